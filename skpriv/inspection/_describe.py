"""Private counts, means, quantiles and histograms of the columns of a table.

Several private quantiles of one vector of numbers, from one answer; of rows of persons too.
"""

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from .._choices import PrivacyModel
from .._compat import forgets_rows
from .._estimation._intervals import two_sided_quantile
from ..preprocessing import Boolean, Categorical, Date, Numeric, Ordinal, Schema, TableEncoder
from ..privacy import Budget, Groups, open_session, protecting
from ..records import ArrayRows, codes, from_table, is_lazy, public_shape
from ._description import (
    Binned,
    Coded,
    ColumnMomentsQuery,
    ColumnRange,
    CountsQuery,
    Description,
    Distribution,
    DistributionQuery,
    Ranged,
    tree_levels,
)

# Levels of the tree over the range: a cell is 1/16384 of it. A level more costs 3% of noise.
QUANTILE_DEPTH = 14


@forgets_rows
def private_quantiles(
    y: Any,
    levels: Any,
    *,
    bounds: Any,
    epsilon: float,
    delta: float,
    privacy: PrivacyModel = "central",
    confidence_level: float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Any:
    """Private quantiles of a vector of numbers, all of them for one price.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Private numbers. They are clipped to `bounds`.
    levels : array-like of shape (n_levels,)
        Public levels of the quantiles, each in (0, 1), in any order: 0.5 is the median. Their
        number costs nothing.
    bounds : (float, float)
        Public range (low, high) of the numbers, from what they mean and never from `y`.
    epsilon : float in (0, inf]
        Privacy parameter of all quantiles together; ``inf`` adds no noise.
    delta : float in (0, 1)
        Privacy parameter: choose it well below one over the number of records.
    privacy : str, default="central"
        The privacy model.
    confidence_level : float in (0, 1), default=None
        If it is given, the ends of an interval for each quantile of `y` are returned too.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    ndarray of shape (n_levels,), or three of them
        The quantiles in the order of `levels`, which do not cross. With a confidence level the
        lower and the upper ends of their intervals follow. An interval contains the quantile of
        `y` itself with this probability, and counts the privacy noise alone.

    Raises
    ------
    ValueError
        If a parameter is out of its range. If `y` holds what is not a finite number it is refused
        after the charge, in one fixed sentence.
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record.
    Released is one Gaussian answer: counts in a binary tree over the public range, whose
    sensitivity its query derives. The number of records is public. All else is computed from
    the answer.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv import private_quantiles
    >>> y = np.random.RandomState(0).normal(50.0, 10.0, size=20_000)
    >>> found = private_quantiles(
    ...     y, [0.1, 0.5, 0.9], bounds=(0, 100), epsilon=1.0, delta=1e-6, random_state=0
    ... )
    >>> bool(abs(found - np.quantile(y, [0.1, 0.5, 0.9])).max() < 0.5)
    True
    """
    levels = np.asarray(levels, dtype=float)
    if levels.ndim != 1 or not len(levels) or not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueError("levels must be a list of numbers above 0 and below 1.")
    if confidence_level is not None and not 0.0 < confidence_level < 1.0:
        raise ValueError(f"confidence_level={confidence_level!r} must lie in (0, 1).")
    low, high = _range(bounds)
    if len(public_shape(y)) != 1 or not len(y):
        raise ValueError("y must hold one number for each record: an array of shape (n_samples,).")
    rows = ArrayRows(np.empty((len(y), 0)), y)
    query = DistributionQuery((Ranged(low, high),), QUANTILE_DEPTH)
    budget = positive_budget(epsilon, delta)
    session = open_session(privacy, rows, None, budget, random_state, "private_quantiles")
    rows.check()  # after the charge
    del y
    answer = session.sum(query, 1.0)
    counts, _ = tree_levels(answer.value, 0, 1)
    distribution = Distribution(counts, answer.noise.scale, (float(answer.n), 0.0))
    z = two_sided_quantile(confidence_level or 0.95)
    found = np.array([distribution.quantile(q, z, 0.0) for q in levels])
    order = np.argsort(levels)
    found[order] = np.maximum.accumulate(found[order], axis=0)  # quantiles do not cross
    values = np.clip(low + found * (high - low), low, high)
    return values[:, 0] if confidence_level is None else tuple(values.T)


@forgets_rows
def propose_max_rows(
    groups: Any,
    *,
    largest: Any,
    epsilon: float,
    delta: float,
    level: float = 0.9,
    privacy: PrivacyModel = "central",
    random_state: int | np.random.RandomState | None = None,
) -> int:
    """Propose ``max_rows_per_group``: a private quantile of the numbers of rows of persons.

    The largest number of rows that a person has is not private, and must not be passed to a fit. A
    quantile of these numbers is released here instead, with a small budget of its own.

    Parameters
    ----------
    groups : array-like of shape (n_samples,)
        The person of each row, as it is passed to ``fit``.
    largest : int
        The most rows that could be proposed, from 1 to 16,384: a public number, generous if need
        be. It is never the largest number that the rows have.
    epsilon : float in (0, inf]
        Privacy parameter of the proposal; ``inf`` adds no noise. A tenth of that of the fit is
        often enough, since the noise is that of a count of persons.
    delta : float in (0, 1)
        Privacy parameter: choose it well below one over the number of persons.
    level : float in (0, 1), default=0.9
        Part of the persons who shall have no more rows. Those beyond it lose some of their rows,
        and a larger level needs more noise in the fit.
    privacy : str, default="central"
        The privacy model.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    int
        A number from 1 to `largest`, which may be passed on as a public one.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one person
    with all rows. The answer is one of `skpriv.private_quantiles` about one number a person. The
    number of persons is public.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import propose_max_rows
    >>> visits = np.random.RandomState(0).poisson(3.0, 5000) + 1
    >>> patients = np.repeat(np.arange(5000), visits)
    >>> propose_max_rows(patients, largest=100, epsilon=0.2, delta=1e-6, random_state=0)
    6
    """
    whole = isinstance(largest, Integral) and not isinstance(largest, bool)
    if not whole or not 1 <= largest <= 2**QUANTILE_DEPTH:
        raise ValueError(
            f"largest={largest!r} must be a whole number from 1 to {2**QUANTILE_DEPTH}."
        )
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie in (0, 1).")
    if len(public_shape(groups)) != 1 or not len(groups):
        raise ValueError("groups must be one label a row: an array of shape (n_samples,).")
    counts = np.bincount(codes(groups))  # what a session is opened on: it charges, and then reads
    with protecting("", 1):  # a person's number of rows is all that is used of them
        found = private_quantiles(
            counts, [level], bounds=(0.5, largest + 0.5), epsilon=epsilon, delta=delta,
            privacy=privacy, random_state=random_state,
        )  # fmt: skip
    return int(np.clip(np.round(found[0]), 1, largest))


def positive_budget(epsilon: float, delta: float) -> Budget:
    """Budget of a release, which epsilon=0 does not allow."""
    budget = Budget(epsilon, delta)
    if not budget.epsilon:
        raise ValueError("epsilon=0 allows no answer: it must be above 0.")
    return budget


def _range(bounds):
    """The public range as two finite numbers."""
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError("bounds must be a pair of numbers (low, high).") from None
    if not (np.isfinite([low, high]).all() and low < high and np.isfinite(high - low)):
        raise ValueError(f"bounds=({low}, {high}) must be finite, with low below high.")
    return low, high


# Levels of the tree over the range of a number: a cell is 1/2048 of the range, .05% of it.
DISTRIBUTION_DEPTH = 11


@forgets_rows
def describe(
    table: Any,
    schema: Any,
    *,
    epsilon: float,
    delta: float,
    columns: Any = None,
    pairs: Any = (),
    confidence_level: float = 0.95,
    estimand: str = "table",
    privacy: PrivacyModel = "central",
    groups: Any = None,
    max_rows_per_group: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Description:
    """Describe the columns of a table with differential privacy, each number with an interval.

    Numbers and dates get a mean, a standard deviation, quantiles and a histogram. Categories,
    levels and truth values get counts. All columns get a count of missing cells. One budget pays
    for all of them together, and it is charged before a cell is read.

    Parameters
    ----------
    table : data frame, Dask frame or rows
        A table of pandas, polars, Arrow, Dask or another library that narwhals knows, or rows of
        :mod:`skpriv.records`.
    schema : Schema or mapping of str to column type
        The public ranges and lists of the columns. What the schema does not name is left out, and a
        target is described like any other column.
    epsilon : float in (0, inf]
        Privacy parameter of the whole description; ``inf`` adds no noise.
    delta : float in (0, 1)
        Privacy parameter: choose it well below one over the number of rows.
    columns : list of str, default=None
        The columns that are described. None describes all columns of the schema. Fewer columns
        have less noise each.
    pairs : sequence of (str, str), default=()
        Pairs of columns for which two-way counts are wanted. Numbers and dates are cut into four
        equal parts of their range.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of each interval by itself.
    estimand : {"table", "population"}, default="table"
        What the intervals are for. With "table" they contain the number that the table itself has,
        and count the privacy noise alone. With "population" rows are taken to be independent draws,
        and the intervals of means, quantiles and shares count the sampling error too.
    privacy : str, default="central"
        The privacy model.
    groups : array-like of shape (n_rows,), default=None
        The person to whom each row belongs. Then the guarantee is for all rows of a person, the
        number of persons is public in place of the number of rows, and missing cells of numbers are
        not counted.
    max_rows_per_group : int, default=None
        The most rows of each person that are used, with `groups`. The others are left out of
        all counts, and the noise grows in proportion to it.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    Description
        It prints as a table. ``to_frame()`` gives all numbers with their intervals, and ``plot()``
        draws one picture for each column.

    Raises
    ------
    ValueError
        If a column is absent, or its range or list is still open. No value is read by then.
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one row, or of
    all rows of a person with `groups`. Released are three Gaussian answers at most: moments and
    numbers of values, counts in a binary tree over the range of each number, and counts of levels
    and pairs. The budget is divided in proportion to their sensitivities, which makes the sum of
    their noise variances least. The sensitivities are derived in the docstrings of the queries. The
    number of rows and the schema are public.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skpriv import describe
    >>> from skpriv.preprocessing import Categorical, Numeric, Schema
    >>> rng = np.random.RandomState(0)
    >>> table = pd.DataFrame(
    ...     {"age": rng.randint(18, 90, 60_000), "sex": rng.choice(["F", "M"], 60_000)}
    ... )
    >>> schema = Schema({"age": Numeric(0, 120), "sex": Categorical(["F", "M"], other=False)})
    >>> found = describe(table, schema, epsilon=1.0, delta=1e-6, random_state=0)
    >>> bool(abs(found["age"].mean.estimate - table["age"].mean()) < 0.5)
    True
    """
    if estimand not in ("table", "population"):
        raise ValueError(f"estimand={estimand!r} must be 'table' or 'population'.")
    if not 0.0 < confidence_level < 1.0:
        raise ValueError(f"confidence_level={confidence_level!r} must lie in (0, 1).")
    schema = _chosen(schema, columns)
    schema.check_filled()
    if (groups is None) != (max_rows_per_group is None):
        raise ValueError("groups and max_rows_per_group go together: give both or neither.")
    persons = None if groups is None else Groups(groups, max_rows_per_group)
    rows = table if is_lazy(table) else from_table(table)
    encoder = TableEncoder(Schema(dict(schema))).fit(rows)
    encoded = encoder.transform(rows)  # cells are read when the session asks, and not before
    if not encoded.n:
        raise ValueError("table has no rows.")
    lines, coded = _parts(encoder, schema)
    tables = [(column,) for column in coded] + _tables(pairs, schema, lines, coded)
    queries = (
        [ColumnMomentsQuery(tuple(lines)), DistributionQuery(tuple(lines), DISTRIBUTION_DEPTH)]
        if lines
        else []
    )
    queries += [CountsQuery(tuple(tables))] if tables else []
    session = open_session(
        privacy, encoded, None, positive_budget(epsilon, delta), random_state, "describe",
        groups=persons,
    )  # fmt: skip
    del table, rows, encoded  # only the session has the data now
    whole = sum(query.sensitivity for query in queries)
    answers = {type(query): session.sum(query, query.sensitivity / whole) for query in queries}
    report = session.report
    return Description(schema, lines, tables, answers, report, confidence_level, estimand)


def _chosen(schema, columns):
    """The columns that are described; each gets a place for missing cells."""
    schema = schema if isinstance(schema, Schema) else Schema(schema)
    names = list(schema) if columns is None else list(columns)
    for name in names:
        if name not in schema:
            raise ValueError(f"columns names {name!r}, which is not a column of the schema.")
    if not names:
        raise ValueError("columns must name at least one column of the schema.")
    return Schema({name: replace(schema[name], missing="indicator") for name in names})


def _parts(encoder, schema):
    """Lines and coded columns of the encoded rows."""
    lines, coded = [], []
    for name, at in encoder.blocks_.items():
        if isinstance(schema[name], Numeric | Date):
            lines.append(ColumnRange(name, at.start, encoder.norm_))
            continue
        assert isinstance(schema[name], Boolean | Categorical | Ordinal)
        levels, points = encoder.coded_levels(name)
        coded.append(Coded(name, tuple(levels), at, points))
    return lines, coded


def _tables(pairs, schema, lines, coded):
    """The pairs of columns of which two-way counts are wanted."""
    known = {column.name: column for column in coded}
    for line in lines:
        labels = _labels(schema[line.name])
        known[line.name] = Binned(line, (*labels, "missing"))
    tables = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError("pairs must be pairs of two different columns: (name, name).")
        for name in pair:
            if name not in known:
                raise ValueError(f"pairs names {name!r}, which is not a column that is described.")
        tables.append(tuple(known[name] for name in pair))
    return tables


def _labels(column):
    """Names of the equal parts of a range."""
    # Four parts of a number in a two-way table: enough for a shape, few enough for counts
    z = np.linspace(-1.0, 1.0, 5)
    ends = column.decode(np.column_stack([z, np.zeros(len(z))]))
    said = [str(end) if isinstance(column, Date) else f"{end:g}" for end in ends]
    return [f"{low} to {high}" for low, high in zip(said[:-1], said[1:], strict=True)]
