"""How large the project is: ``python tests/sizes.py`` prints it, and a test holds it under caps.

Lines of code are those that are neither blank, nor comment, nor docstring. Whoever needs more
raises a cap in a commit that says what was removed in exchange.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAPS = {
    "lines of code": 24_000,
    "lines of code in a file": 500,
    "constants": 134,  # numbers with a name of their own
    "files": 146,
    "lines of tests": 26_000,
    "words of pages for users": 27_000,  # of the first volume
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


def code_lines(source, tree):
    """Number of lines that are neither blank, comment nor docstring."""
    lines = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    for node in nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


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


@cache
def file_lines(folder):
    """Lines of code of each file, by its path in the folder."""
    return {
        path.relative_to(folder): code_lines(*parsed(path)) for path in sorted(folder.rglob("*.py"))
    }


def rooms():
    """Lines of code of each room."""
    found: Counter = Counter()
    for path, lines in file_lines(ROOT / "skpriv").items():
        found[path.parts[0]] += lines
    return found


def sizes():
    """What has a cap, measured."""
    package = file_lines(ROOT / "skpriv")
    trees = [parsed(ROOT / "skpriv" / path)[1] for path in package]
    pages = [page for page in (ROOT / "docs").rglob("*.md") if not _proof(page)]
    return {
        "lines of code": sum(package.values()),
        "lines of code in a file": max(package.values()),
        "constants": sum(len(list(constants(tree))) for tree in trees),
        "files": len(package),
        "lines of tests": sum(file_lines(ROOT / "tests").values()),
        "words of pages for users": sum(len(page.read_text("utf-8").split()) for page in pages),
    }


def _proof(page):
    """Whether a page is of the second volume: measurements, proofs, rates and repaired errors."""
    report = page.stem in ("experiments", "published_errors", "rates")
    return report or bool({"evidence", "mathematics", "auto_examples"} & set(page.parts))


if __name__ == "__main__":
    for name, lines in rooms().most_common():
        print(f"{name:<28}{lines:>8,}")
    for name, size in sizes().items():
        print(f"{name:<28}{size:>8,}   at most {CAPS[name]:,}")
