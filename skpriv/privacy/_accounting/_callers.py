"""Who called a fit, and the warnings about it: of public facts alone, at the line of the user."""

import sys
import warnings
from math import isinf
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from scipy.sparse import issparse

from ..._stored import frozen
from ...exceptions import PrivacyWarning
from ...records import aloud

PIPELINE = (
    "covers the last step of the Pipeline alone: what steps before it learned from the data is "
    "neither counted nor protected"
)
CALLED = (
    "covers this fit to the rows that {} passed to it: repeated rows (resampling), and what else "
    "reads the rows (scores, choices by scores, other steps, a final estimator), are neither "
    "counted nor protected"
)
# Modules of scikit-learn that pass a fit on and read no rows. PIPELINE is about what the other
# steps of a Pipeline read.
PASSING = ("sklearn.base", "sklearn.pipeline", "sklearn.utils", "sklearn.externals")
# Transformers of skpriv.preprocessing that learn nothing from rows.
PUBLIC = ("BoundsScaler", "FormulaEncoder", "TableEncoder")
ROWWISE = ("Binarizer", "Normalizer")  # of sklearn.preprocessing
LIBRARIES = ("skpriv", "sklearn", "joblib", "contextlib")
# Modules that run tasks in other threads and processes, where no line of the user is in sight
WORKERS = ("joblib.externals", "multiprocessing", "concurrent", "threading", "distributed", "dask")
LARGE_EPSILON = 10.0
# Facts that a search, or another loop of many fits, was warned of
_known_facts: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


@frozen
class Callers:
    """Who called the running fit, and may have read the rows or repeated them.

    Attributes
    ----------
    pipeline : tuple of str
        Steps before the last one of a scikit-learn Pipeline that may have learned from the rows:
        see `learns_nothing`.
    within : tuple of str
        Names of other estimators, and of functions of scikit-learn that fit (in workers of a
        bagging, the estimator itself is out of sight).
    in_policy : bool
        Whether a bandit policy fits, whose early epochs have few records by design.
    repeated_by : object
        The outermost search or loop of scikit-learn that may fit many times, or None.
    line : frame or None
        Where the user called; None in the worker of another process or thread.
    """

    pipeline: tuple[str, ...]
    within: tuple[str, ...]
    in_policy: bool
    repeated_by: Any
    line: FrameType | None

    @classmethod
    def now(cls) -> "Callers":
        """The callers of the code that runs."""
        learning = []
        names = []
        policy = False
        outermost = None
        line = None
        worker = False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            name = frame.f_code.co_name
            # The locals of a frame are looked at in functions that fit or loop alone, since that
            # keeps rows alive.
            fits = name.lstrip("_").startswith("fit")
            loop = module == "joblib.parallel"
            looked_at = loop or fits and not module.startswith("skpriv.")
            owner = frame.f_locals.get("self") if looked_at else None
            if module == "sklearn.pipeline" and fits:
                steps = getattr(owner, "steps", [])
                sparse = issparse(frame.f_locals.get("X"))
                learning += [
                    f"{name!r} ({type(step).__name__})"
                    for name, step in steps[:-1]
                    if not learns_nothing(step, sparse)
                ]
            elif not module.startswith(("skpriv.", *PASSING)):
                kinds = [kind.__module__ for kind in type(owner).__mro__]
                if "sklearn.base" in kinds:
                    outermost = owner
                    if not any(kind.startswith("skpriv.") for kind in kinds):
                        names.append(type(owner).__name__)
                elif module.startswith("sklearn.") and not names:
                    names.append(".".join(module.split(".")[:2]))
            # It charges before any step reads, and refuses those that learn from rows.
            learning = [] if module == "skpriv.model_selection._private_search" else learning
            if loop and owner is not None:
                outermost = owner
            policy = policy or module.startswith("skpriv.bandits.")
            worker = worker or module.startswith(WORKERS)
            if line is None and not worker and module.partition(".")[0] not in LIBRARIES:
                line = frame
            frame = frame.f_back
        return cls(
            tuple(dict.fromkeys(learning)), tuple(dict.fromkeys(names)), policy, outermost, line
        )

    def warn(self, message: str, fact: str = "") -> None:
        """Give a `PrivacyWarning` at the line of the user.

        A search gives one of each fact, or of each message where no fact is named.
        """
        fact = fact or message
        known_facts: set[str] = set()
        if self.repeated_by is not None:
            known_facts = _known_facts.setdefault(self.repeated_by, known_facts)
        if self.line is None or fact in known_facts:
            return
        known_facts.add(fact)
        names = self.line.f_globals
        place = self.line.f_lineno
        with aloud():  # no cell is looked at meanwhile
            warnings.warn_explicit(
                message, PrivacyWarning, self.line.f_code.co_filename, place,
                names.get("__name__"), names.setdefault("__warningregistry__", {}),
            )  # fmt: skip

    def warn_of_budget(self, budget: Any, n: int, unit: str) -> None:
        """Warn of a guarantee that promises little, by public numbers; before it is charged.

        Parameters
        ----------
        budget : Budget
        n : int
            Number of records, 0 where they are yet to come.
        unit : str
            The word for one of them.
        """
        if isinf(budget.epsilon):  # no privacy is promised
            return
        if budget.epsilon > LARGE_EPSILON:
            self.warn(
                f"epsilon={budget.epsilon:g} is above {LARGE_EPSILON:g} and promises little "
                "protection: pass an epsilon of about 1, or say in the release why that was not "
                "enough."
            )
        if 0 < n and 1.0 <= budget.delta * n and not self.in_policy:
            self.warn(
                f"delta={budget.delta:g} is at least 1/n for n={n:,} {unit}s: it would allow to "
                f"publish the data of one {unit} as they are. Pass a delta well below {1.0 / n:.0e}"
                ", such as 1e-8."
            )
        if self.pipeline:
            self.warn(
                f"The guarantee {PIPELINE}. Here these may have learned from the rows, or may "
                f"stop at a cell before the charge: {', '.join(self.pipeline)}. Pass public ranges "
                "and lists to BoundsScaler or TableEncoder in their place."
            )
        if self.within:
            self.warn(
                f"The guarantee {CALLED.format(', '.join(self.within))}. PrivateSearchCV and "
                "private_score choose and measure privately.",
                "within",
            )


def learns_nothing(step: Any, sparse: bool = False, charged: bool = False) -> bool:
    """Whether a step of a Pipeline learns nothing from rows and maps each of them by itself.

    It is empty, a transformer of skpriv, or consists of such steps; and after the charge a
    Normalizer or Binarizer, or an encoder of public lists that ignores other values.

    Parameters
    ----------
    step : transformer, str or None
    sparse : bool
        Whether rows are sparse: whether the output of a ColumnTransformer is sparse too depends on
        how many entries are zero, unless it never is.
    charged : bool
        Whether rows come to the step after the charge. Steps of scikit-learn refuse some cells,
        such as infinity, so that before it their error would tell of one.
    """
    kind = type(step)
    is_ours = kind.__module__.startswith("skpriv.preprocessing.") and kind.__name__ in PUBLIC
    if step is None or _is(step, "passthrough") or is_ours:
        return True
    if not kind.__module__.startswith("sklearn."):
        return False
    if kind.__name__ == "Pipeline":
        return all(learns_nothing(inner, sparse, charged) for _, inner in step.steps)
    if kind.__name__ == "ColumnTransformer":
        used = [*step.transformers, ("", step.remainder, ())]  # a callable chooses by the rows
        given = all(
            not callable(columns) and (_is(one, "drop") or learns_nothing(one, sparse, charged))
            for _, one, columns in used
        )
        return given and not (sparse and step.sparse_threshold)
    if not charged:
        return False
    if kind.__name__ == "OneHotEncoder":
        # It looks for other values while it fits, or warns of them where a level is dropped.
        limits = step.min_frequency, step.max_categories, step.drop
        ignores = step.handle_unknown == "ignore" and limits == (None, None, None)
        return ignores and not step.sparse_output and not isinstance(step.categories, str)
    return kind.__name__ in ROWWISE


def _is(step: Any, word: str) -> bool:
    return isinstance(step, str) and step == word
