import pandas as pd

from skpriv.datasets import load_warfarin
from skpriv.datasets._loaders import _infer_vkorc1


def test_rows_are_the_patients_with_a_recorded_dose():
    warfarin = load_warfarin()
    assert warfarin.data.shape == (6037, 20)
    assert warfarin.target.min() > 0


def test_missing_values_are_public_constants_with_an_indicator():
    data = load_warfarin().data
    for name, reference in {"age_decade": 6.0, "height": 170.0, "weight": 75.0}.items():
        missing = data[f"{name.removesuffix('_decade')}_missing"] == 1
        assert missing.any() and not missing.all()
        assert (data.loc[missing, name] == reference).all()


def test_genotype_is_inferred_only_where_it_is_not_measured_and_linked():
    raw = pd.DataFrame(
        [
            ("White", "A/A", "C/C", "C/C", "G/G"),
            ("White", None, "T/T", "C/C", None),
            ("White", None, "C/T", None, None),
            ("White", None, None, None, "C/G"),
            ("Unknown", None, "T/T", None, "C/G"),
            ("Black or African American", None, "T/T", "C/T", "G/G"),
        ],
        columns=[
            "Race (OMB)",
            "VKORC1     -1639 consensus",
            "VKORC1 2255 consensus",
            "VKORC1 1173 consensus",
            "VKORC1 1542 consensus",
        ],
    )
    inferred = [None if pd.isna(x) else x for x in _infer_vkorc1(raw)]
    assert inferred == ["A/A", "A/A", None, "A/G", None, "A/G"]
