"""Real tables with a binary or a count target, or several classes, with public bounds of columns.

As in `_tables`, bounds follow from what a column means and none is read off the rows. A binary
target has the classes 0 and 1; `bounds_y` of a count is the most that anybody would report.
"""

import numpy as np
from _tables import Table, _read


def _table(raw, target, bounds, bounds_y=(0.0, 1.0), **flags):
    """Named columns, and an indicator of one value, or of all but one, of others."""
    data, bounds = raw[list(bounds)].astype(float), dict(bounds)
    for name, (column, value) in flags.items():
        data[name], bounds[name] = (raw[column] == value).astype(float), (0.0, 1.0)
    complete = (data.notna().all(axis=1) & target.notna()).to_numpy()
    data = data[complete].reset_index(drop=True)
    return Table(data, target.to_numpy(dtype=float)[complete], bounds, bounds_y, [])


def families():
    """Whether 30,000 mothers of two have a third child."""
    raw = _read("AER", "Fertility2")
    bounds = {"age": (15.0, 40.0), "work": (0.0, 52.0)}
    return _table(raw, raw["morekids"] == "yes", bounds, boy1=("gender1", "male"),
                  boy2=("gender2", "male"), black=("afam", "yes"), hispanic=("hispanic", "yes"),
                  other=("other", "yes"))  # fmt: skip


def part_time():
    """Whether 28,155 men work part time: one in eleven."""
    raw = _read("AER", "CPS1988")
    raw = raw.assign(log_wage=np.log(raw["wage"]))
    bounds = {"log_wage": (3.0, 10.0), "education": (0.0, 18.0), "experience": (-5.0, 65.0)}
    return _table(raw, raw["parttime"] == "yes", bounds, black=("ethnicity", "afam"),
                  city=("smsa", "yes"), south=("region", "south"), west=("region", "west"),
                  midwest=("region", "midwest"))  # fmt: skip


def insurance():
    """Whether 8,802 Americans have a health insurance."""
    raw = _read("AER", "HealthInsurance")
    kinds = ["ged", "highschool", "bachelor", "master", "phd", "other"]
    levels = {f"education_{i}": ("education", v) for i, v in enumerate(kinds)}
    return _table(raw, raw["insurance"] == "yes", {"age": (18.0, 65.0), "family": (1.0, 15.0)},
                  healthy=("health", "yes"), limited=("limit", "yes"), man=("gender", "male"),
                  married=("married", "yes"), self_employed=("selfemp", "yes"),
                  south=("region", "south"), west=("region", "west"),
                  midwest=("region", "midwest"), black=("ethnicity", "afam"),
                  **levels)  # fmt: skip


def smokers():
    """Whether 10,000 workers smoke."""
    raw = _read("AER", "SmokeBan")
    levels = {f"education_{i}": ("education", v)
              for i, v in enumerate(["hs", "some college", "college", "master"])}  # fmt: skip
    return _table(raw, raw["smoker"] == "yes", {"age": (16.0, 90.0)}, ban=("ban", "yes"),
                  black=("afam", "yes"), hispanic=("hispanic", "yes"), woman=("gender", "female"),
                  **levels)  # fmt: skip


def arrests():
    """Whether 5,226 people arrested for marijuana were released with a summons."""
    raw = _read("carData", "Arrests")
    bounds = {"year": (1997.0, 2002.0), "age": (10.0, 70.0), "checks": (0.0, 6.0)}
    return _table(raw, raw["released"] == "Yes", bounds, black=("colour", "Black"),
                  man=("sex", "Male"), employed=("employed", "Yes"),
                  citizen=("citizen", "Yes"))  # fmt: skip


def crashes():
    """Whether 26,216 people died in a car crash: one in twenty-two."""
    raw = _read("DAAG", "nassCDS")
    bounds = {"ageOFocc": (15.0, 100.0), "yearacc": (1997.0, 2002.0), "yearVeh": (1950.0, 2003.0),
              "frontal": (0.0, 1.0)}  # fmt: skip
    speeds = {f"speed_{i}": ("dvcat", v) for i, v in enumerate(["25-39", "40-54", "55+"])}
    return _table(raw, raw["dead"] == "dead", bounds, airbag=("airbag", "airbag"),
                  belted=("seatbelt", "belted"), man=("sex", "m"), driver=("occRole", "driver"),
                  **speeds)  # fmt: skip


def outside_work():
    """Whether a person has no paid work, in 19,609 German person-years."""
    raw = _read("COUNT", "rwm5yr")
    bounds = {"age": (20.0, 70.0), "year": (1984.0, 1988.0), "hhninc": (0.0, 40.0),
              "educ": (5.0, 20.0), "female": (0.0, 1.0), "married": (0.0, 1.0),
              "kids": (0.0, 1.0)}  # fmt: skip
    return _table(raw, raw["outwork"], bounds)


def wives():
    """Whether 22,272 wives have a health insurance of their own work."""
    raw = _read("Ecdat", "HI")
    bounds = {"whrswk": (0.0, 100.0), "experience": (-5.0, 60.0), "kidslt6": (0.0, 6.0),
              "kids618": (0.0, 10.0), "husby": (0.0, 200.0)}  # fmt: skip
    kinds = ["9-11years", "12years", "13-15years", "16years", ">16years"]
    levels = {f"education_{i}": ("education", v) for i, v in enumerate(kinds)}
    return _table(raw, raw["whi"] == "yes", bounds, covered=("hhi", "yes"),
                  black=("race", "black"), hispanic=("hispanic", "yes"), **levels)  # fmt: skip


def wells():
    """Whether 3,020 households leave a well with arsenic."""
    raw = _read("carData", "Wells")
    bounds = {"arsenic": (0.0, 10.0), "distance": (0.0, 400.0), "education": (0.0, 20.0)}
    return _table(raw, raw["switch"] == "yes", bounds, association=("association", "yes"))


def late_payers():
    """Whether 30,000 people paid a credit card late in September, given April."""
    raw = _read("causaldata", "credit_cards")
    raw = raw.assign(late=raw["LateSept"].astype(float))
    bounds = {"BillApril": (-400.0, 1000.0), "AGE": (18.0, 90.0), "LateApril": (0.0, 1.0)}
    return _table(raw, raw["late"], bounds)


def heart_attacks():
    """Whether 6,367 people survived a heart attack."""
    raw = _read("DAAG", "monica")
    flags = {f"{c}_{v}": (c, v) for c in ("premi", "diabetes", "highbp", "hichol", "angina",
             "stroke") for v in ("y", "nk")}  # fmt: skip
    flags |= {f"smoking_{v}": ("smstat", v) for v in ("c", "x", "nk")}
    bounds = {"age": (25.0, 75.0), "yronset": (85.0, 93.0)}
    return _table(raw, raw["outcome"] == "live", bounds, man=("sex", "m"), **flags)


def unions():
    """Whether 4,360 young men belong to a union."""
    raw = _read("Ecdat", "Males")
    bounds = {"school": (0.0, 20.0), "exper": (0.0, 25.0), "wage": (-4.0, 5.0),
              "year": (1980.0, 1987.0)}  # fmt: skip
    return _table(raw, raw["union"] == "yes", bounds, black=("ethn", "black"),
                  hispanic=("ethn", "hisp"), married=("maried", "yes"), ill=("health", "yes"),
                  factory=("industry", "Manufacturing"), trade=("industry", "Trade"),
                  craft=("occupation", "Craftsmen, Foremen_and_kindred"))  # fmt: skip


def benefits():
    """Whether 4,877 people who lost their work draw unemployment benefits."""
    raw = _read("Ecdat", "Benefits")
    bounds = {"stateur": (0.0, 20.0), "statemb": (50.0, 400.0), "age": (18.0, 65.0),
              "tenure": (0.0, 45.0), "yrdispl": (1.0, 10.0), "rr": (0.0, 1.0)}  # fmt: skip
    return _table(raw, raw["ui"] == "yes", bounds, slack=("joblost", "slack_work"),
                  other_race=("nwhite", "yes"), long_school=("school12", "yes"),
                  man=("sex", "male"), city=("smsa", "yes"), married=("married", "yes"),
                  kids=("dkids", "yes"), head=("head", "yes"))  # fmt: skip


def doctor_visits():
    """Visits to a doctor in two weeks of 5,190 Australians."""
    raw = _read("AER", "DoctorVisits")
    bounds = {"age": (0.15, 0.8), "income": (0.0, 1.5), "illness": (0.0, 5.0),
              "reduced": (0.0, 14.0), "health": (0.0, 12.0)}  # fmt: skip
    return _table(raw, raw["visits"], bounds, (0.0, 14.0), woman=("gender", "female"),
                  private=("private", "yes"), chronic=("lchronic", "yes"))  # fmt: skip


def old_age_visits():
    """Visits to a doctor in a year of 4,406 Americans of 66 and more."""
    raw = _read("AER", "NMES1988")
    bounds = {"hospital": (0.0, 10.0), "chronic": (0.0, 8.0), "age": (6.0, 11.0),
              "school": (0.0, 20.0)}  # fmt: skip
    return _table(raw, raw["visits"], bounds, (0.0, 100.0), man=("gender", "male"),
                  black=("afam", "yes"), poor=("health", "poor"), well=("health", "excellent"),
                  insured=("insurance", "yes"), medicaid=("medicaid", "yes"))  # fmt: skip


def german_visits():
    """Visits to a doctor in three months, in 19,609 German person-years."""
    raw = _read("COUNT", "rwm5yr")
    bounds = {"age": (20.0, 70.0), "year": (1984.0, 1988.0), "hhninc": (0.0, 40.0),
              "educ": (5.0, 20.0), "female": (0.0, 1.0), "outwork": (0.0, 1.0),
              "married": (0.0, 1.0), "kids": (0.0, 1.0)}  # fmt: skip
    return _table(raw, raw["docvis"], bounds, (0.0, 100.0))


def outpatient_visits():
    """Visits to a doctor in a year, in 20,186 person-years."""
    raw = _read("Ecdat", "DoctorContacts")
    bounds = {"lc": (0.0, 5.0), "ndisease": (0.0, 60.0), "linc": (0.0, 12.0), "lfam": (0.0, 3.0),
              "educdec": (0.0, 25.0), "age": (0.0, 70.0)}  # fmt: skip
    return _table(raw, raw["mdu"], bounds, (0.0, 80.0), woman=("sex", "female"),
                  poor=("health", "poor"), fair=("health", "fair"))  # fmt: skip


def hospital_days():
    """Days in a hospital of 3,589 heart patients."""
    raw = _read("COUNT", "azpro")
    bounds = dict.fromkeys(("procedure", "sex", "age75", "admit"), (0.0, 1.0))
    return _table(raw, raw["los"], bounds, (0.0, 90.0))


def children():
    """Children ever born to 9,120 people."""
    raw = _read("AER", "GSS7402")
    bounds = {"age": (18.0, 89.0), "education": (0.0, 20.0), "year": (1974.0, 2002.0),
              "siblings": (0.0, 20.0)}  # fmt: skip
    return _table(raw, raw["kids"], bounds, (0.0, 8.0), white=("ethnicity", "cauc"),
                  city=("city16", "yes"), poor=("lowincome16", "yes"),
                  immigrant=("immigrant", "yes"))  # fmt: skip


def injuries():
    """How badly 25,929 people were injured in a car crash: five classes."""
    raw = _read("DAAG", "nassCDS")
    raw = raw[raw["injSeverity"] <= 4.0]
    bounds = {"ageOFocc": (15.0, 100.0), "yearacc": (1997.0, 2002.0), "frontal": (0.0, 1.0)}
    speeds = {f"speed_{i}": ("dvcat", v) for i, v in enumerate(["25-39", "40-54", "55+"])}
    return _table(raw, raw["injSeverity"], bounds, airbag=("airbag", "airbag"),
                  belted=("seatbelt", "belted"), man=("sex", "m"), driver=("occRole", "driver"),
                  **speeds)  # fmt: skip


def regions():
    """In which of four regions 28,155 men work."""
    raw = _read("AER", "CPS1988")
    raw = raw.assign(log_wage=np.log(raw["wage"]))
    bounds = {"log_wage": (3.0, 10.0), "education": (0.0, 18.0), "experience": (-5.0, 65.0)}
    places = raw["region"].map({"south": 0, "midwest": 1, "northeast": 2, "west": 3})
    return _table(raw, places.astype(float), bounds, black=("ethnicity", "afam"),
                  city=("smsa", "yes"), part_time=("parttime", "yes"))  # fmt: skip


def educations():
    """Which of six levels of education 22,272 wives have."""
    raw = _read("Ecdat", "HI")
    bounds = {"whrswk": (0.0, 100.0), "kidslt6": (0.0, 6.0), "kids618": (0.0, 10.0),
              "husby": (0.0, 200.0)}  # fmt: skip
    kinds = ["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"]
    levels = raw["education"].map({v: i for i, v in enumerate(kinds)})
    return _table(raw, levels.astype(float), bounds, insured=("whi", "yes"),
                  covered=("hhi", "yes"), black=("race", "black"),
                  hispanic=("hispanic", "yes"))  # fmt: skip


def poverty():
    """Whether a government does too little, enough or too much for the poor: 5,381 people."""
    raw = _read("carData", "WVS")
    answers = raw["poverty"].map({"Too Little": 0, "About Right": 1, "Too Much": 2})
    return _table(raw, answers.astype(float), {"age": (18.0, 100.0)}, man=("gender", "male"),
                  religious=("religion", "yes"), degree=("degree", "yes"), usa=("country", "USA"),
                  sweden=("country", "Sweden"), norway=("country", "Norway"))  # fmt: skip


BINARY = {
    "families": families, "part_time": part_time, "insurance": insurance, "smokers": smokers,
    "arrests": arrests, "crashes": crashes, "outside_work": outside_work, "wives": wives,
    "wells": wells, "late_payers": late_payers, "heart_attacks": heart_attacks,
    "unions": unions, "benefits": benefits,
}  # fmt: skip
COUNTS = {
    "doctor_visits": doctor_visits, "old_age_visits": old_age_visits,
    "german_visits": german_visits, "outpatient_visits": outpatient_visits,
    "hospital_days": hospital_days, "children": children,
}  # fmt: skip
SEVERAL = {
    "injuries": injuries, "regions": regions, "educations": educations, "poverty": poverty,
}  # fmt: skip
