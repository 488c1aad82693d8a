"""How large the project is: ``python tests/sizes.py`` prints it, and a test holds it under a cap.

The measure of the package is its syntax nodes, docstrings and annotations aside: no formatter moves
them, so that packing two statements into one line saves nothing. Annotations are counted apart and
have no cap: a cap on them would pay whoever leaves out a type. Whoever raises the cap says in the
commit what was removed in exchange.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAPS = {
    "syntax nodes": 285_665,
    # Questions whether an attribute exists, and looks past attributes. A base class with a neutral
    # answer takes their place; what stays is asked of objects of other libraries.
    "reflections": 36,
    "looks into objects": 27,
    "words of pages for users": 22_000,  # of the first volume
}


@cache
def parsed(path):
    """Source of a file, and its syntax tree."""
    source = path.read_text(encoding="utf-8")
    return source, ast.parse(source)


@cache
def nodes(tree):
    """All nodes of a syntax tree, for all who look through it."""
    return list(ast.walk(tree))


def code_nodes(tree):
    """Number of syntax nodes of a file; docstrings and annotations are no code."""
    documented = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    texts = (ast.get_docstring(node) for node in run_nodes(tree) if isinstance(node, documented))
    docstrings = sum(text is not None for text in texts)
    return len(nodes(tree)) - 2 * docstrings - annotation_nodes(tree)


def annotation_nodes(tree):
    """Number of syntax nodes of the annotations of a file, and of what only these need."""
    fields = ("annotation", "returns")
    parts = [getattr(node, field, None) for node in run_nodes(tree) for field in fields]
    parts += filter(is_for_types, tree.body)
    return sum(len(list(ast.walk(part))) for part in parts if part is not None)


@cache
def run_nodes(tree):
    """All nodes of a file but those of imports and classes that only annotations need."""
    for_types = {node for part in tree.body if is_for_types(part) for node in ast.walk(part)}
    return [node for node in nodes(tree) if node not in for_types]


def is_for_types(node):
    """Whether a piece of source is run by no program, or imports names of kinds of types."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.ImportFrom) and node.module in ("typing", "collections.abc")


def is_number(node):
    """Whether a piece of source is a number, or is computed from numbers alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.BinOp) and is_number(node.left) and is_number(node.right)


def constants(tree):
    """(name, value) of each number that has a name in a module, of pairs of names as well."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            names = target.elts if both else [target]
            values = node.value.elts if both else [node.value]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and is_number(value):
                    yield name.id, ast.unparse(value)


def rooms(measure=code_nodes):
    """A measure of the files of each room; the number of their syntax nodes by default."""
    package, sizes_by_room = ROOT / "skpriv", Counter()
    for path in sorted(package.rglob("*.py")):
        sizes_by_room[path.relative_to(package).parts[0]] += measure(parsed(path)[1])
    return sizes_by_room


def is_reflection(node):
    """Whether a piece of source is a hasattr, or a getattr with a default."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name == "hasattr" or (name == "getattr" and len(node.args) == 3)


def looks_inside(node):
    """Whether a piece of source is a vars(...), or an attribute __dict__."""
    if isinstance(node, ast.Attribute):
        return node.attr == "__dict__"
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "vars"


def counted(rule):
    """Number of pieces of source for which a rule holds, by room."""
    package, pieces_by_room = ROOT / "skpriv", Counter()
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0]
        pieces_by_room[room] += sum(map(rule, nodes(parsed(path)[1])))
    return pieces_by_room


def sizes():
    """What has a cap, measured."""
    pages = [page for page in (ROOT / "docs").rglob("*.md") if not _proof(page)]
    return {
        "syntax nodes": sum(rooms().values()),
        "reflections": sum(counted(is_reflection).values()),
        "looks into objects": sum(counted(looks_inside).values()),
        "words of pages for users": sum(map(_words, pages)),
    }


def _words(page):
    """Number of words of a page, without what its calls print."""
    text = re.sub(r"^```text\n.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return len(text.split())


def _proof(page):
    """Whether a page is of the second volume: measurements, proofs, rates and repaired errors."""
    report = page.stem in ("experiments", "published_errors", "rates")
    return report or bool({"evidence", "mathematics", "auto_examples"} & set(page.parts))


if __name__ == "__main__":
    asked, looked_at = counted(is_reflection), counted(looks_inside)
    annotated = rooms(annotation_nodes)
    print(f"{'room':<28}{'nodes':>8}{'of annotations':>16}{'reflections':>13}{'looks inside':>14}")
    for name, size in rooms().most_common():
        print(f"{name:<28}{size:>8,}{annotated[name]:>16,}{asked[name]:>13}{looked_at[name]:>14}")
    print(f"{'nodes of annotations':<28}{annotated.total():>8,}")
    for name, size in sizes().items():
        print(f"{name:<28}{size:>8,}   at most {CAPS[name]:,}")
