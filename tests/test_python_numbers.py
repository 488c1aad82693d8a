"""Public numbers may be NumPy's: results are those of Python's numbers, without a warning."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from registry import python_numbers as registry
from registry.doors import public
from sklearn.base import clone

import skpriv
from skpriv import Budget
from skpriv._parameters import as_python, of_numbers
from skpriv.exceptions import PrivacyError
from skpriv.privacy import open_session, split

WITH_PARAMETERS = {
    name: kind for name, kind in public().items() if hasattr(kind, "_parameter_constraints")
}


def test_every_door_of_numbers_has_a_rule_or_a_maker():
    assert not registry.strange()


@pytest.mark.parametrize("name", sorted(WITH_PARAMETERS))
def test_a_parameter_is_a_number_of_python(name):
    kind = WITH_PARAMETERS[name]
    model = kind.__new__(kind)
    for parameter in kind._parameter_constraints:
        for value in (np.float16(0.5), np.float64(0.5), np.int8(3), np.True_):
            setattr(model, parameter, value)
            found = getattr(model, parameter)
            assert type(found) in (float, int, bool) and found == value
        day, hour = np.datetime64("2020-01-01", "ns"), np.timedelta64(1, "ns")  # ints by `item`
        for value in (None, "auto", (np.float16(0.1), 1.0), np.array(0.5), day, hour):
            setattr(model, parameter, value)
            assert getattr(model, parameter) is value


def test_arguments_of_a_decorated_function_are_numbers_of_python():
    given = of_numbers(lambda *arguments, **named: (*arguments, *named.values()))
    found = given(np.int8(3), "3", flag=np.False_, level=np.float32(0.5))
    assert found == (3, "3", False, 0.5)
    assert [type(value) for value in found] == [int, str, bool, float]


def _plain(value):
    """Values that compare equal where all numbers do."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value if isinstance(value, int | float) else str(value)


def _whole(value):
    """The same number as an int, where it is one."""
    return int(value) if value == int(value) else value


def _as(kind, value):
    """A number of this kind, where the kind has its value; a count is a whole number, always."""
    if isinstance(value, int) and issubclass(kind, np.floating):
        return np.int16(value)
    if issubclass(kind, np.integer):
        info = np.iinfo(kind)
        if value != int(value) or not info.min <= value <= info.max:
            return value
    return kind(value) if kind(value) == value else value


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("door", registry.DOORS)
def test_numbers_of_numpy_give_the_same_result(door):
    """Numbers that a kind of few bits does not have stay as they are."""
    call = registry.DOORS[door]
    of_floats, of_ints = _plain(call(as_python)), _plain(call(_whole))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in registry.KINDS:
            expected = of_ints if issubclass(kind, np.integer) else of_floats
            assert _plain(call(partial(_as, kind))) == expected, kind


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("door", sorted(set(registry.DOORS) - {"Session.stream"}))
def test_arrays_without_a_dimension_are_refused_or_mean_their_number(door):
    call = registry.DOORS[door]
    try:
        found = _plain(call(np.array))
    except (TypeError, ValueError) as refusal:
        assert "array(" in str(refusal) or "must be" in str(refusal)
    else:
        assert found == _plain(call(as_python))


def test_parts_of_small_numbers_do_not_overlap():
    """As numbers of 8 bits, 100 and 100 are -56: of 150 records that would be enough."""
    session = open_session("central", registry.X, registry.Y, Budget(1.0, 1e-6), 0)
    with pytest.raises(PrivacyError, match="do not fit"):
        split(session, np.int8(100), np.int8(100))


@pytest.mark.parametrize("number", [np.longdouble(0.5), np.float64(0.5), np.float32(0.5)])
def test_models_with_a_number_of_any_size_can_be_cloned(number):
    """Also those of files of versions that kept numbers of NumPy."""
    model = skpriv.linear_model.LinearRegression(epsilon=number)
    assert clone(model).epsilon == 0.5 and type(model.epsilon) is float
    vars(model)["epsilon"] = number
    read = pickle.loads(pickle.dumps(model))
    assert clone(read).epsilon == 0.5 and type(read.epsilon) is float
