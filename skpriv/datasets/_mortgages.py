"""Home ownership of men born around the cutoff of a mortgage subsidy (Fetter, 2013)."""

from typing import Any
from ._base import make_bunch, one_hot, packaged_file

_DESCR = """Home ownership of 214,144 men in the United States, by birth cohort.

Data of D. K. Fetter, How do mortgage subsidies affect home ownership? Evidence from the
mid-century GI bills, American Economic Journal: Economic Policy 5(2), 2013, pp. 111-147, as the
package causaldata ships it.

Target: 1 if the man owns his home, else 0. Features, with their public bounds:

- qob_minus_kw: quarter of birth, centred on the quarter from which men were eligible for the
  subsidy by service in the Korean war, (-60, 60): the cohorts within fifteen years;
- qob: quarter of the year of birth, (1, 4);
- nonwhite: 1 if the census records another race than white;
- vet_wwko: 1 for a veteran of World War II or the Korean war;
- bpl_*: state of birth, one-hot over the fifty states and the District of Columbia. The 52nd
  code, "United States, ns" (state not specified), is all zeros.
"""

# Public: the states, not the names that occur in the sample.
_STATES = """
    Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware,
    District of Columbia, Florida, Georgia, Hawaii, Idaho, Illinois, Indiana, Iowa, Kansas,
    Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan, Minnesota, Mississippi,
    Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico, New York,
    North Carolina, North Dakota, Ohio, Oklahoma, Oregon, Pennsylvania, Rhode Island,
    South Carolina, South Dakota, Tennessee, Texas, Utah, Vermont, Virginia, Washington,
    West Virginia, Wisconsin, Wyoming
"""
_BPL = {
    state: "bpl_" + state.lower().replace(" ", "_")
    for state in (name.strip() for name in _STATES.replace("\n", " ").split(","))
}
_BOUNDS = {"qob_minus_kw": (-60.0, 60.0), "qob": (1.0, 4.0)}


def load_mortgages(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Load home ownership of 214,144 men by birth cohort (regression on a binary target).

    Needs the `data` extra: ``python -m pip install "skpriv[data]"``.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    as_frame : bool, default=True
        If True, data is a DataFrame and target a Series; if False, both are float arrays and
        `frame` is None.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        data : (214144, 55) features, all of them numbers, none missing.
        target : (214144,) 1 for owners, else 0.
        frame : data and target together.
        feature_names, target_names : lists of str.
        DESCR : str, the meaning of the columns and where the bounds come from.
        bounds : dict of feature name -> (low, high), public.
        bounds_y : (low, high) of the target, public.
        exclusive : list of lists of feature names of which at most one is nonzero in a row.

        ``(data, target)`` if `return_X_y` is True.

    Raises
    ------
    ImportError
        If the data extra is not installed.

    Examples
    --------
    >>> from skpriv.datasets import load_mortgages
    >>> mortgages = load_mortgages()
    >>> mortgages.data.shape
    (214144, 55)
    >>> mortgages.bounds_y
    (0.0, 1.0)
    """
    path = packaged_file("causaldata", "mortgages", "fetter_mortgages.csv")
    import pandas as pd

    raw = pd.read_csv(path)
    numeric = ["qob_minus_kw", "qob", "nonwhite", "vet_wwko"]
    frame = pd.DataFrame(
        {
            **{name: raw[name].astype(float) for name in numeric},
            **one_hot(raw["bpl"], _BPL),
            "home_ownership": raw["home_ownership"].astype(float),
        }
    )
    return make_bunch(
        frame,
        "home_ownership",
        descr=_DESCR,
        bounds=_BOUNDS,
        bounds_y=(0.0, 1.0),
        exclusive=[list(_BPL.values())],
        return_X_y=return_X_y,
        as_frame=as_frame,
    )
