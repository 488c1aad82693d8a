"""A cell that lets nobody read it, in every kind of table, and what came out when it was tried."""

import io
import warnings
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from traceback import walk_tb

import numpy as np

from skpriv import BudgetAccountant
from skpriv.exceptions import InvalidValues
from skpriv.records import INVALID_VALUES, Rows

SECRET = "HIV positive 4711"
# Every way in which Python, NumPy, pandas and scikit-learn look at a cell. What they ask of any
# object to find out its type (an attribute) is no reading.
_WAYS = [
    "float", "int", "index", "complex", "bool", "str", "repr", "format", "bytes", "hash", "eq",
    "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv",
    "rtruediv", "matmul", "rmatmul", "pow", "neg", "pos", "abs", "round", "trunc", "floor", "ceil",
    "iter", "contains", "array", "array_ufunc", "reduce_ex", "copy", "deepcopy",
]  # fmt: skip


class Read(Exception):
    """Somebody has read the cell."""


class Cell:
    """A cell that warns and raises at any reading, with a secret, and notes what was paid by then.

    Parameters
    ----------
    paid : callable
        Number of charges so far.
    """

    def __init__(self, paid):
        self.paid, self.reads = paid, []


def _way(name):
    def read(self, *args, **options):
        self.reads.append((name, self.paid()))
        warnings.warn(SECRET, stacklevel=2)
        raise Read(SECRET)

    return read


for _name in _WAYS:
    setattr(Cell, f"__{_name}__", _way(_name))


def _placed(array, cell, last):
    """Copy of an array of objects with the cell in its first or in its last record."""
    found = np.array(array, dtype=object)
    if not found.ndim:
        return np.array(cell, dtype=object)
    found[(-1,) * found.ndim if last else (0,) * found.ndim] = cell
    return found


def _frame(library):
    def make(array, cell, last):
        if np.ndim(array) not in (1, 2):
            return None
        secret = SECRET if isinstance(cell, Cell) else cell
        table = _placed(array, secret, last)
        columns = table.reshape(len(table), -1).T.tolist()
        # Numbers beside a text are texts in a typed column.
        at = (-1 if last else 0, -1 if last else 0)
        columns[at[1]] = list(map(str, columns[at[1]]))
        data = {f"x{j}": column for j, column in enumerate(columns)}
        kind = "table" if library == "pyarrow" else "DataFrame"
        found = getattr(import_module(library), kind)(data)
        return found["x0"] if np.ndim(array) == 1 else found

    return make


def _or(cell, bad):
    """The bad value, unless a clean number is asked for."""
    return bad if isinstance(cell, Cell) else cell


# How an array of numbers gets a cell that is none; None where this library has no such table.
KINDS = {
    "objects": _placed,
    "lists": lambda array, cell, last: _placed(array, cell, last).tolist(),
    "text": lambda array, cell, last: _placed(array, _or(cell, SECRET), last),
    "complex": lambda array, cell, last: _placed(array, _or(cell, np.complex64(1 + 2j)), last),
    "NaN": lambda array, cell, last: _placed(array, _or(cell, np.nan), last).astype(float),
    "huge": lambda array, cell, last: _placed(array, _or(cell, 10**400), last).tolist(),
    "pandas": _frame("pandas"),
    "polars": _frame("polars"),
    "arrow": _frame("pyarrow"),
}


class Outcome:
    """What a stranger sees of one call.

    Attributes
    ----------
    error : Exception or None
    said : str
        All that was said: the error with all that it hangs on, warnings, what was printed.
    charges : int
    early : list
        Readings of the cell before anything was charged.
    """

    def __init__(self, call, kind, last, clean=None):
        with BudgetAccountant(1e6, 0.5) as accountant, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            cell = Cell(lambda: len(accountant.charges))
            out, self.error = io.StringIO(), None
            with redirect_stdout(out), redirect_stderr(out):
                try:
                    call(lambda array: KINDS[kind](array, cell if clean is None else clean, last))
                except Exception as error:
                    self.error = error
            self.charges = len(accountant.charges)
        self.early = [name for name, paid in cell.reads if not paid]
        parts = [*_chain(self.error), *(str(one.message) for one in told), out.getvalue()]
        self.said = "\n".join(part for part in parts if part)

    @property
    def quotes(self):
        """Whether a part of the secret was said."""
        return any(word in self.said for word in ("HIV", "positive", "4711", "Read", "2j"))

    @property
    def held(self):
        """Local variables of the package that hold rows, in frames of the error's tracebacks."""
        return [
            f"{frame.f_code.co_filename}:{frame.f_code.co_name} {name}"
            for error in _errors(self.error)
            for frame, _ in walk_tb(error.__traceback__)
            if "/skpriv/" in frame.f_code.co_filename
            for name, value in frame.f_locals.items()
            if _is_rows(value)
        ]

    @property
    def is_refusal(self):
        """Whether the call went through, or was refused by the one fixed sentence."""
        refused = type(self.error) is InvalidValues
        return self.error is None or (refused and str(self.error).startswith(INVALID_VALUES))


def _errors(error):
    """An error, its causes and contexts."""
    found = []
    while error is not None and len(found) < 9:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _chain(error):
    """Texts of an error, of its causes and contexts, and of their notes."""
    return [
        text
        for one in _errors(error)
        for text in (str(one), repr(one), *getattr(one, "__notes__", []))
    ]


def _is_rows(value):
    """Whether a value is a table or a column, a set of rows, or a collection of these."""
    if isinstance(value, dict | list | tuple):
        return any(map(_is_rows, value.values() if isinstance(value, dict) else value))
    shape = getattr(value, "shape", ())
    return isinstance(value, Rows) or (len(shape) > 0 and shape[0] >= 20)


def supported(kind):
    """Whether the library of a kind is installed."""
    names = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
    return kind not in names or find_spec(names[kind]) is not None
