"""From a table to rows of the unit ball by a formula, as users of R and statsmodels write it.

The package formulaic reads formulas, expands terms and codes levels. The factors of a term are
computed here, from a short list of functions, so that no text of a formula is ever run.

Symbol map: F are the columns of the terms in the user's units, shape (n, m). E = F A' + a are the
encoded rows. So the user's coefficients of beta on E are A' beta, and the intercept grows by
a'beta.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import field
from itertools import product, starmap
from keyword import iskeyword
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._estimation._cells import placed
from .._linalg import FLOAT_STEP, lengths_of, unwarned
from .._parameters import attribute, parameters
from .._stored import frozen, stored
from ..records import present_names, same_names
from ._bounds_scaler import CoefficientMap
from ._columns._lists import Categorical
from ._encoder import SchemaEncoder
from ._schema import columns_of

if TYPE_CHECKING:
    from .._contracts import Array
    from ._schema import Schema

OPERATORS = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
    ast.Pow: np.power,
}  # fmt: skip
INCREASING = {name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "sqrt", "exp")}
FUNCTIONS = {"I": np.positive, "abs": np.absolute, **INCREASING}
# Largest size of a part of a term on the public ranges, and smallest one of a term: of larger and
# smaller ones the factors of encoded rows would leave the numbers of float64, 2e-308 to 2e308.
SMALLEST_PRODUCT = 1e-290
LARGEST_NUMBER = 1e300
# Between points of the grid a term may have a peak, of which so many times the largest value on the
# grid is kept: the row is cut to the unit ball anyway, and its squared norm has to be a number.
BEYOND = 1e12
WORD_PREFIX = "_column_named_"  # before the name of a column that is a word of Python
REMEDY = "change the public range in the schema, or the term."
GRID = 20_000  # public points at which functions of several columns are compared
# A formula of a few characters may stand for more than any machine can hold. It is refused beyond
# so many products that formulaic would write out, and numbers of one public table: a term has up
# to 13 columns, a formula up to 7,000 coefficients. All terms are computed for each set of columns,
# of which each takes as long as so many numbers a term: minutes, where it is just allowed.
MOST_PRODUCTS = 20_000
MOST_NUMBERS = 50_000_000
COLUMN_OF_BLOCK = 50
MOST_CELL_POINTS = 100_000  # if cells have more points, so many are drawn of them


@stored
@parameters
class FormulaEncoder(SchemaEncoder):
    """Encode the columns of a data frame by a formula, as rows of the unit ball.

    The formula is that of R, statsmodels and pyfixest: ``"educ + exper + I(exper**2) + C(region) +
    educ:female"``. Public ranges and levels come from the schema, so that nothing is learnt from
    the rows and no budget is spent. The regressor takes ``data_norm=1.0``.
    :func:`skpriv.inspection.inference` of the pipeline tells the coefficients of the formula's
    terms in the user's units.

    Parameters
    ----------
    formula : str
        The right-hand side, or "target ~ right-hand side", where the target is a column of the
        schema. ``+``, ``:``, ``*``, ``^`` and parentheses have their usual meaning, and are read
        by the package formulaic. A term may be a column, ``I(...)`` with +, -, \\*, / and \\*\\*,
        abs, exp, sqrt, log, log2, log10, log1p, or ``C(column)`` for levels. A column with another
        name than a variable of Python stands in backticks, or in ``Q('...')``. The intercept
        belongs to the regressor, not to the formula.
    schema : Schema or mapping of str to column type
        The public type of each column that the formula names.

    Attributes
    ----------
    target_ : str or None
        The left-hand side of the formula.
    terms_ : list of str
        Names of the columns of the terms, in the order of the coefficients.
    columns_ : list of str
        Columns of the table that the formula names.
    n_features_in_ : int
        Number of columns of the frame seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names.

    See Also
    --------
    TableEncoder : Every column of a schema, each for itself.

    Notes
    -----
    **Privacy guarantee**: `fit` reads the names of the columns and nothing from the rows;
    `transform` maps each row by itself. A cell that is no level, or cannot be read, is what the
    schema says of it, and no error tells of it. Values are clipped to the range of the schema. Each
    part of a term has public ends, which follow from the ranges: ``I(1 / (1 + exp(x)))`` of an x up
    to 1000 is refused by `fit`, since its part exp(x) is no number there, and would say so.

    Terms such as x and x**2 are nearly the same function where x is far from 0, and noise would
    hide both. So terms of the same columns are one block. A block is made orthogonal to the
    constant and to the terms of fewer of its columns, for values spread evenly over the public
    ranges. Its rows are divided by the largest norm on a grid of public points. With K blocks,
    each has a norm of at most 1 / sqrt(K), and a row of at most 1.

    An unordered column is coded against its first level wherever the term without it is in the
    formula, and by all its levels elsewhere, as R does.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpriv.preprocessing import Boolean, FormulaEncoder, Numeric
    >>> schema = {"exper": Numeric(0, 50), "female": Boolean()}
    >>> frame = pd.DataFrame({"exper": [0, 10, 50], "female": [True, False, True]})
    >>> encoder = FormulaEncoder("exper + I(exper**2) + female", schema).fit(frame)
    >>> encoder.terms_
    ['exper', 'I(exper ** 2)', 'female']
    >>> encoder.transform(frame).shape
    (3, 3)
    """

    formula: str = field(kw_only=False)
    schema: Any = field(kw_only=False)
    _largest: Any = attribute(inf)  # of encoders that are older than it

    def _chosen(self, schema: "Schema", names: list[str]) -> list[str]:
        """Columns of the schema that the formula has."""
        design = _design_of(self.formula, schema)
        self.target_ = design.target
        columns = [name for name in schema if name in frozenset().union(*design.columns)]
        present_names(columns, names, "formula", "X")
        return columns

    def _learn(self, schema: "Schema") -> None:
        """Names of the columns of all terms, A and a: made of public numbers."""
        design = self._design
        one = self._references
        design.check(one)
        self.terms_, blocks = design.blocks(one)
        size = len(self.terms_)
        self._matrix = np.zeros((size, size))
        self._shift = np.zeros(size)
        self._largest = np.zeros(size)
        for block, at in blocks.items():
            lower = [where for other, where in blocks.items() if other < block]
            inside = np.concatenate([np.empty(0, int), *lower])
            F = design.matrix(one | _grid(block, schema, size))
            self._largest[at] = BEYOND * np.abs(F[:, at]).max(axis=0)
            maps = _orthogonal(F[:, inside], F[:, at], [self.terms_[i] for i in at])
            self._matrix[np.ix_(at, inside)], self._matrix[np.ix_(at, at)], self._shift[at] = maps
        # In a column of categories a missing cell has a level, and needs no indicator.
        lines = [name for name in self.columns_ if not isinstance(schema[name], Categorical)]
        self._missing = [name for name in lines if schema[name].has_indicator]
        # An indicator shares the block of the terms of its column, which are 0 in a missing row.
        self._own = [blocks.get(frozenset([name]), np.empty(0, int)) for name in self._missing]
        alone = sum(not len(at) for at in self._own)
        self._norm = float(np.sqrt(len(blocks) + alone) * (1.0 + 64 * FLOAT_STEP))

    def _encoded(self, X: Any) -> np.ndarray:
        """Encoded rows of a table in memory."""
        frame = columns_of(X, self.columns_)
        schema = self._types
        return self._short({name: schema[name]._values_in(frame[name]) for name in self.columns_})

    def _rows_of(self, blocks: dict[str, np.ndarray]) -> np.ndarray:
        """Rows of the blocks that columns have in a table."""
        schema = self._types
        return self._short({name: schema[name]._values_of(block) for name, block in blocks.items()})

    def _short(self, read: dict[str, Any]) -> "Array":
        """Rows of norm at most 1: between two points of the grid one may be a little longer."""
        rows = self._rows(read)
        return rows / np.maximum(self._norm, lengths_of(rows))[:, None]

    def _rows(self, read: dict[str, Any]) -> "Array":
        """Rows, but for the norm, of what was read: values, and whether they are missing."""
        F = self._design.matrix({name: values for name, (values, _) in read.items()})
        rows = F.clip(-self._largest, self._largest) @ self._matrix.T + self._shift
        for name, at in zip(self._missing, self._own, strict=True):
            absent = read[name][1]
            rows[np.ix_(absent, at)] = 0.0
            rows = np.column_stack([rows, absent])
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the encoded columns, one for each column of the formula's terms.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored.

        Returns
        -------
        ndarray of str
            Names in the order of the encoded columns.
        """
        check_is_fitted(self)
        return np.array([*self.terms_, *(f"{name}=missing" for name in self._missing)], object)

    def coefficient_map(self) -> CoefficientMap:
        """The linear map from coefficients of encoded rows to those of the formula's terms.

        Returns
        -------
        CoefficientMap
            ``names``, ``matrix``; ``apply(coef, intercept)``, ``covariance(covariance)``. The
            intercept is that of a row whose terms are all 0.
        """
        check_is_fitted(self)
        schema: Mapping[str, Any] = self._types
        size = len(self.terms_)
        names = list(self.terms_)
        matrix = np.eye(size + len(self._missing) + 1)
        matrix[:size, :size] = self._matrix.T
        matrix[-1, :size] = self._shift
        design = self._design
        typical = (design.matrix(self._references) @ self._matrix.T + self._shift)[0]
        for i, (name, at) in enumerate(zip(self._missing, self._own, strict=True)):
            # The terms of a missing row are 0, and those of its reference value are not.
            matrix[size + i, at] = -typical[at]
            names.append(schema[name].missing_effect(name))
        matrix[:, :-1] /= self._norm
        # Places of the terms by the columns of the table that they depend on
        blocks = design.blocks(self._references)[1]
        return CoefficientMap(names, matrix, self._cells(blocks), self._lists(blocks))

    def _lists(self, blocks: dict[frozenset[str], np.ndarray]) -> dict[str, tuple[str, list[str]]]:
        """Lists whose levels have terms of their own, against the first one."""
        schema = self._types
        lists = {}
        for name in self.columns_:
            levels = schema[name].block(name)
            terms = [self.terms_[i] for i in blocks.get(frozenset([name]), ())]
            if levels.reference and len(terms) == len(levels.effects):
                lists[name] = levels.reference, terms
        return lists

    def _cells(self, blocks: dict[frozenset[str], np.ndarray]) -> np.ndarray:
        """Functions of encoded rows that are 0 outside of one cell of some columns with levels.

        The columns are those of a term. Beside the indicator of a cell there are its products with
        numbers, such as a slope within a level, where the formula has them.
        """
        size = len(self.terms_)
        schema = self._types
        levels = {name for name in self.columns_ if schema[name].coded}
        found = [np.eye(size + len(self._missing) + 1)[size:-1] * self._norm]
        for coded in dict.fromkeys(block & levels for block in blocks):
            if coded:
                beside = (b - levels for b in blocks if b & levels and b & levels <= coded)
                names = [*sorted(coded), *sorted(frozenset().union(*beside))]
                found.append(self._cells_of(blocks, names, len(coded)))
        return np.vstack(found)

    def _cells_of(
        self, blocks: dict[frozenset[str], np.ndarray], names: list[str], n_coded: int
    ) -> np.ndarray:
        """The same of the cells of the first of these columns, with products by the others."""
        size = len(self.terms_)
        n_cells = prod(len(self._states(name)) for name in names[:n_coded])
        count = int((GRID / n_cells) ** (1.0 / max(len(names) - n_coded, 1)))
        states = [self._states(name, min(max(count, 3), 9)) for name in names]
        sizes = [len(one) for one in states]
        length = prod(sizes)
        places: Any
        if length <= MOST_CELL_POINTS:
            places = np.unravel_index(np.arange(length), sizes)
        else:  # points that are drawn from the grid tell the same functions
            length = MOST_CELL_POINTS
            rng = np.random.RandomState(0)
            places = [rng.randint(one, size=length) for one in sizes]
        read = {
            name: (np.full(length, value[0]), np.zeros(length, bool))
            for name, value in self._references.items()
        }
        for name, one, place in zip(names, states, places, strict=True):
            read[name] = one[place, 0], one[place, 1] > 0.5
        own: list[Any] = [at for block, at in blocks.items() if block <= set(names)]
        own.append([size + i for i, name in enumerate(self._missing) if name in names])
        columns = np.concatenate(own).astype(int)
        rows = self._rows(read)[:, columns] / self._norm
        cells = np.ravel_multi_index(places[:n_coded], sizes[:n_coded])
        functions = vanishing(np.column_stack([rows, np.ones(length)]), cells)
        return placed(functions, columns, size + len(self._missing))

    def _states(self, name: str, count: int = 3) -> np.ndarray:
        """Public values of a column, and whether a missing cell counts as this value."""
        column = self._types[name]
        values = [(value, 0.0) for value in column._public_values(count)]
        absent = [(column._reference, 1.0)] * (name in self._missing)
        return np.array(values + absent)

    @property
    def _design(self) -> "_Design":
        """The terms of the formula."""
        return _design_of(self.formula, self._types)

    @property
    def _references(self) -> dict[str, np.ndarray]:
        """One row: the values against which missing cells are told."""
        schema = self._types
        return {name: np.array([schema[name]._reference]) for name in self.columns_}


@frozen
class _Design:
    """The terms of a formula.

    ``formula`` has factors that are columns of a frame, ``factors`` an expression for each of them,
    ``products`` the factors of each term, and ``columns`` the columns of the table that each term
    depends on.
    """

    target: str | None
    schema: Any
    formula: Any
    factors: dict[str, Any]
    products: list[Any]
    columns: list[Any]

    def check(self, cells: dict[str, np.ndarray]) -> None:
        """Refuse terms that have no bounds on the public ranges, or are no numbers on them."""
        sizes = dict.fromkeys(self.factors, 1.0)
        for text, values in self._values(cells).items():
            sizes[text] = max(values.high, -values.low)
        levels = {
            text: len(self.schema[name]._level_names)
            for text, name in self.factors.items()
            if isinstance(name, str)
        }
        size = sum(prod(levels.get(text, 1) for text in texts) for texts in self.products)
        work = size * max(size, COLUMN_OF_BLOCK * len(set(self.columns)))
        _check_size(work, MOST_NUMBERS, f"its {size:,} columns")
        for texts in self.products:
            parts = [sizes[text] for text in texts]
            if prod(min(part, 1.0) for part in parts) < SMALLEST_PRODUCT:
                raise ValueError(f"{':'.join(texts)} is too small on the public ranges: {REMEDY}")
            # The product of some of the factors may be larger than that of all
            if prod(max(part, 1.0) for part in parts) > LARGEST_NUMBER:
                raise ValueError(f"{':'.join(texts)} is too large on the public ranges: {REMEDY}")

    def matrix(self, cells: dict[str, np.ndarray]) -> "Array":
        """Columns F of all terms at values of the columns of the table."""
        return self.expanded(cells).to_numpy(dtype=float)[:, 1:]

    def blocks(
        self, one: dict[str, np.ndarray]
    ) -> tuple[list[str], dict[frozenset[str], np.ndarray]]:
        """Names of all columns F, and places of those of each set of columns of the table.

        Parameters
        ----------
        one : dict of str to ndarray of shape (1,)
            One row of values.

        Returns
        -------
        (list of str, dict of frozenset to ndarray of int)
        """
        expanded = self.expanded(one)
        _, *places = expanded.model_spec.term_indices.values()  # the first one is the intercept
        blocks = {block: np.empty(0, int) for block in self.columns}
        for block, at in zip(self.columns, places, strict=True):
            blocks[block] = np.append(blocks[block], np.array(at) - 1)
        return [name.replace(WORD_PREFIX, "") for name in expanded.columns[1:]], blocks

    def expanded(self, cells: dict[str, np.ndarray]) -> Any:
        """The same as a frame of formulaic, which knows their names and terms; intercept first."""
        import pandas as pd

        size = max(map(len, cells.values()))
        frame = {}
        numbers = self._values(cells)
        for text, tree in self.factors.items():
            if isinstance(tree, str):  # The factor is the levels of a column.
                codes = np.broadcast_to(np.rint(cells[tree]).astype(int), size)
                frame[text] = pd.Categorical.from_codes(codes, self.schema[tree]._level_names)
            else:
                frame[text] = np.broadcast_to(numbers[text].values, size)
        return self.formula.get_model_matrix(pd.DataFrame(frame), na_action="ignore")

    def _values(self, cells: dict[str, np.ndarray]) -> "dict[str, _Bounded]":
        """Values of the factors that are numbers, with their public ends."""
        columns = {}
        for name, values in cells.items():
            ends = self.schema[name]._public_values(2)
            columns[name] = _Bounded(ends[0], ends[-1], np.clip(values, ends[0], ends[-1]))
        trees = {text: tree for text, tree in self.factors.items() if not isinstance(tree, str)}
        return {text: _evaluated(tree, columns, text) for text, tree in trees.items()}


@frozen
class _Bounded:
    """Values of a part of a term, and the public ends between which they can be.

    A function of NumPy derives the ends of what it returns from those of its arguments. It refuses
    what may be infinite, or no number, before anything that it is a part of is looked at. So all
    parts of a term are finite for whatever a cell says. Rounding may lead beyond an end, to where
    the next function is not defined: values are clipped to their ends.
    """

    low: float
    high: float
    values: Any

    def __array_ufunc__(self, function: Any, method: str, *arguments: Any) -> Any:
        first = arguments[0]
        last = arguments[-1]
        ends = [(one.low, one.high) for one in arguments]
        with unwarned():
            corners = np.array(list(starmap(function, product(*ends))))
            values = function(*(one.values for one in arguments))
        power = last.low if function is np.power else 1.0
        undefined = function is np.divide and last.low <= 0.0 <= last.high
        undefined |= power < 0.0 and first.low <= 0.0 <= first.high
        undefined |= power % 1.0 > 0.0 and first.low < 0.0
        undefined |= function in INCREASING.values() and not corners[0] > -inf
        if undefined or not (np.abs(corners) <= LARGEST_NUMBER).all():
            at = last if function is np.divide else first
            raise ValueError(
                f"{function.__name__} {'has no bounds' if undefined else 'is too large'} where its "
                f"argument is from {at.low:g} to {at.high:g}: {REMEDY}"
            )
        low = corners.min()
        high = corners.max()
        if function in (np.power, np.absolute) and first.low < 0.0 < first.high:
            low = min(low, 0.0)
        return _Bounded(low, high, np.clip(values, low, high))


def _evaluated(tree: Any, columns: dict[str, _Bounded], text: str) -> Any:
    """Values of an expression with their ends.

    Parameters
    ----------
    tree : ast node
    columns : dict of str to _Bounded
    text : str
        The factor, for the error.
    """
    try:
        return _value(tree, columns)
    except ValueError as error:
        raise ValueError(f"In {text}, {error}".replace(WORD_PREFIX, "")) from None


def _value(tree: Any, columns: dict[str, _Bounded]) -> Any:
    match tree:
        case ast.Name(id=name) if name in columns:
            return columns[name]
        case ast.Constant(value=int() | float() as number) if abs(number) <= LARGEST_NUMBER:
            return _Bounded(float(number), float(number), float(number))
        case ast.UnaryOp(op=ast.USub()):
            return np.negative(_value(tree.operand, columns))
        case ast.Call(args=[inner], keywords=[]):
            name = ast.unparse(tree.func).removeprefix("np.")
            if name in FUNCTIONS:
                return FUNCTIONS[name](_value(inner, columns))
        case ast.BinOp() if type(tree.op) in OPERATORS:
            others = {} if isinstance(tree.op, ast.Pow) else columns
            sides: Any = _value(tree.left, columns), _value(tree.right, others)
            return OPERATORS[type(tree.op)](*sides)
    raise ValueError(
        f"{ast.unparse(tree)} is not understood: a term may have C(column), and +, -, *, /, ** "
        f"with a number, abs, {', '.join(INCREASING)} of columns with numbers. AdditiveRegressor "
        "fits curves."
    )


def _design_of(formula: str, schema: "Schema") -> _Design:
    """The target, and the terms of the right-hand side."""
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
        from formulaic.parser.types import Factor, Term
    except ImportError:
        raise ImportError(
            "FormulaEncoder needs the package formulaic: pip install 'skpriv[formula]'."
        ) from None
    in_backticks = re.sub(r"\bQ\(\s*(['\"])(.+?)\1\s*\)", r"`\2`", formula)
    try:
        readable = _without_keywords(in_backticks, schema)
        _check_products(DefaultFormulaParser().get_ast(readable))
        parsed = Formula(readable)
    except (FormulaicError, RecursionError, SyntaxError, KeyError):
        raise ValueError(
            f"formula={formula!r} cannot be read: write it as 'target ~ a + b + a:b', with names "
            "of columns that are no words of Python in backticks, as in 'target ~ `my column` + b'."
        ) from None
    target = None
    if hasattr(parsed, "lhs"):
        target = "".join(map(str, parsed.lhs)).strip("`").removeprefix(WORD_PREFIX)
        parsed = parsed.rhs
        (target,) = same_names([target], schema)
        if target is None:
            raise ValueError(
                f"The left-hand side of formula={formula!r} must be one column of the schema: "
                "transform the target before the fit, with its bounds. FormulaEncoder needs no "
                "left-hand side, since fit takes y."
            )
    if any(not hasattr(term, "factors") for term in parsed):
        raise ValueError(f"formula={formula!r} must have one right-hand side.")
    terms: list[Any] = []
    columns: list[Any] = []
    products: list[Any] = []
    factors: dict[str, Any] = {}
    for term in parsed:
        if all(factor.eval_method.value == "literal" for factor in term.factors):
            terms.append(term)  # the intercept
            continue
        terms.append(Term([Factor(f.expr, eval_method="lookup") for f in term.factors]))
        used = {str(f.expr): _factor(f, schema) for f in term.factors}
        factors |= {text: tree for text, (tree, _) in used.items()}
        products.append(list(used))
        columns.append(frozenset().union(*(names for _, names in used.values())))
    if len(terms) == len(columns):
        raise ValueError(
            "formula has no intercept: leave out '- 1' or '0 +'. In Python fit_intercept=False of "
            "the regressor fits without one."
        )
    if not columns:
        raise ValueError(f"formula={formula!r} has no terms: name at least one column.")
    if target is not None and target in frozenset().union(*columns):
        raise ValueError(f"The target {target!r} is on both sides of the formula.")
    return _Design(target, schema, Formula(terms), factors, products, columns)


def _without_keywords(formula: str, schema: "Schema") -> str:
    """The formula with other names of columns that are words of Python, such as `class`."""
    words = "|".join(name for name in schema if iskeyword(name))
    return (
        re.sub(rf"(?<![\w.%])({words})(?![\w%])", rf"{WORD_PREFIX}\1", formula)
        if words
        else formula
    )


def _factor(factor: Any, schema: "Schema") -> tuple[Any, ...]:
    """A factor of a term: its expression, or the column whose levels it is, and its columns."""
    text = str(factor.expr)
    quoted = dict[str, str]()
    written = text.replace(WORD_PREFIX, "")
    if factor.eval_method.value == "lookup":
        tree: Any = ast.Name(text.removeprefix(WORD_PREFIX))
    else:
        while text.count("`") > 1:  # Python can parse no quoted name: it gets another one.
            head, name, rest = text.split("`", 2)
            quoted[f"_quoted_{len(quoted)}"] = name
            text = f"{head}_quoted_{len(quoted) - 1}{rest}"
        tree = ast.parse(text.strip(), mode="eval").body
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [node for node in names if node not in functions and node.id != "np"]
    for node in names:
        meant = [quoted.get(node.id, node.id).removeprefix(WORD_PREFIX)]
        (node.id,) = present_names(meant, schema, "formula", "the schema")
    if any(isinstance(node, ast.Name) and node.id == "offset" for node in functions):
        raise ValueError(
            f"{written} is not supported. Subtract an offset of a linear regression from the "
            "target before the fit. For counts pass the rate, count / exposure, as the target and "
            "the exposure as sample_weight of fit, with its public bound max_weight."
        )
    coded = isinstance(tree, ast.Call) and ast.unparse(tree.func) == "C"
    if coded or isinstance(tree, ast.Name) and isinstance(schema[tree.id], Categorical):
        of = tree.args[0] if coded and len(tree.args) == 1 else tree
        if not isinstance(of, ast.Name) or schema[of.id]._level_names is None:
            raise ValueError(
                f"{written} must be C(column) of a column with levels: Categorical, Ordinal or "
                "Boolean in the schema, whose first category is the reference level."
            )
        return of.id, {of.id}
    for node in names:
        if isinstance(schema[node.id], Categorical):
            raise ValueError(f"{written}: {node.id!r} has levels, not numbers.")
    return tree, {node.id for node in names}


def _check_size(count: float, largest: int, of: str) -> None:
    """Refuse a formula that stands for too much."""
    if count > largest:
        raise ValueError(
            f"formula is too large, for {of}: leave out interactions, or take columns with fewer "
            "levels."
        )


def _check_products(parsed: Any) -> None:
    """Refuse a formula that has too many products of columns, before formulaic writes them out.

    Parameters
    ----------
    parsed : ASTNode, Token or None
        The formula as formulaic reads it. Equal products count each.
    """
    from formulaic.parser.types import ASTNode

    nodes = [parsed]
    for node in nodes:
        nodes += node.args if isinstance(node, ASTNode) else ()
    found: dict[int, int] = {}  # of each node; a number may be an exponent, and counts as itself
    for node in reversed(nodes):
        if isinstance(node, ASTNode) and node.args:
            counts = [found[id(part)] for part in node.args]
            count = sum(counts)
            if node.operator.symbol in ("**", "^"):
                count = max(counts[0] ** min(counts[1], 64), counts[1])
            elif node.operator.symbol in ("*", ":", "/", "in"):
                count += prod(counts)
            _check_size(count, MOST_PRODUCTS, "its products of columns")
        else:
            text = str(node).lstrip("0")[:9]
            count = int(text) if text.isdecimal() else 1
        found[id(node)] = count


def _grid(block: frozenset[str], schema: "Schema", size: int) -> dict[str, np.ndarray]:
    """About so many public points of a block's columns, at equal steps over their ranges.

    The size is the number of columns of all terms, which are computed at each of them.
    """
    names = sorted(block)
    wide = [name for name in names if schema[name].kind in ("numeric", "date")]
    others = np.prod([len(schema[name]._public_values(3)) for name in names if name not in wide])
    count = max(3, int((GRID / others) ** (1.0 / max(len(wide), 1))))
    values = [schema[name]._public_values(count) for name in names]
    numbers = prod(len(one) + 1 for one in values) * (size + len(values))  # with missing cells
    _check_size(numbers, MOST_NUMBERS, f"the term of {', '.join(names)}")
    axes = np.meshgrid(*values, indexing="ij")
    return {name: axis.ravel() for name, axis in zip(names, axes, strict=True)}


def vanishing(rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Linear functions of rows that are 0 outside of one cell.

    Parameters
    ----------
    rows : ndarray of shape (n_points, p)
        Public points.
    cells : ndarray of int of shape (n_points,)
        The cell of each.

    Returns
    -------
    ndarray of shape (n_functions, p)
        The mean square of each over the points of its cell is 1. The first one of a cell is the
        nearest to 1 there.
    """
    left, values, right = np.linalg.svd(rows, full_matrices=False)
    full = values > 1e-9 * values[0]
    left = left[:, full]
    back = right[full] / values[full, None]
    found = [np.empty((0, rows.shape[1]))]
    for cell in np.unique(cells):
        inside = left[cells == cell]
        _, singular, turns = np.linalg.svd(inside, full_matrices=False)
        own = turns[singular > 1.0 - 1e-9]  # functions that have no part outside
        if len(own):
            sums = own @ inside.sum(axis=0)
            order = np.linalg.qr(np.column_stack([sums, np.eye(len(sums))]))[0].T
            order *= np.where(order @ sums < 0.0, -1.0, 1.0)[:, None]
            found.append(np.sqrt(len(inside)) * order @ own @ back)
    return np.vstack(found)


def _orthogonal(
    lower: np.ndarray, columns: np.ndarray, names: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Map to rows of norm at most 1 that are white and orthogonal to the constant and lower terms.

    Parameters
    ----------
    lower : ndarray of shape (n_points, n_lower)
        Terms of fewer columns of the table, at public points.
    columns : ndarray of shape (n_points, n_columns)
    names : list of str

    Returns
    -------
    (of the lower terms, of the columns, shift)
        Arrays of shapes (n_columns, n_lower), (n_columns, n_columns) and (n_columns,).
    """
    base = np.column_stack([np.ones(len(columns)), lower])
    size = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    scale = np.maximum(np.abs(base).max(axis=0), 1e-300)
    line = np.linalg.lstsq(base / scale, columns / size, rcond=1e-12)[0]
    rest = columns / size - base / scale @ line
    _, triangle = np.linalg.qr(rest / np.sqrt(len(rest)))
    dependent = np.abs(np.diagonal(triangle)) <= 1e-9
    if dependent.any():
        raise ValueError(
            f"The term {names[int(np.argmax(dependent))]!r} is a sum of other terms on the public "
            "ranges of the schema: take it out of the formula."
        )
    white = np.linalg.inv(triangle).T
    white /= lengths_of(rest @ white.T).max()
    below = -(white @ line.T) / scale
    return below[:, 1:], white / size, below[:, 0]
