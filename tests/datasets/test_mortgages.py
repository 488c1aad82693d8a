from skpriv.datasets import load_mortgages


def test_meaning_of_the_columns():
    mortgages = load_mortgages()
    assert mortgages.data.shape == (214_144, 55)
    first = mortgages.data.iloc[0]
    assert first[first != 0].to_dict() == {
        "qob_minus_kw": -54.5,
        "qob": 1.0,
        "vet_wwko": 1.0,
        "bpl_colorado": 1.0,
    }
    assert set(mortgages.target) == {0.0, 1.0}


def test_every_state_is_named_and_only_the_unspecified_one_is_not():
    mortgages = load_mortgages()
    (states,) = mortgages.exclusive
    assert len(states) == 51
    born = mortgages.data[states]
    assert (born.sum(axis=0) > 0).all()
    assert (born.sum(axis=1) == 0).sum() == 312
