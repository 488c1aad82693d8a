"""Sentences begin with their subject: inversions are rare in pages, docstrings and comments."""

import ast
import io
import re
import tokenize
from pathlib import Path

from sizes import nodes, parsed

ROOT = Path(__file__).parents[1]
# A sentence that begins with one of these words has its verb late; so has a bare "That".
INVERSION = re.compile(r"(Of|What|Whatever|Where|Whoever|Among)\b|That (?!is why)")
MOST_INVERSIONS = 5  # of 1,000 sentences; peers have 0 to 3, questions are no inversions
SHORTEST = 5  # words: shorter ones are headings, entries of lists and labels


def split_sentences(text):
    """Sentences of some words of a text without code; a heading ends without a full stop."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split())):
            sentence = sentence.lstrip("-*#> ")
            if len(sentence.split()) >= SHORTEST:
                yield sentence


def page_texts():
    """(name, text) of each page, without code, headings, tables and what calls print."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not {"auto_examples", "_build"} & set(page.parts):
            text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
            text = re.sub(r"^\s*(?:\||#|\* - |  - ).*$", "", text, flags=re.M)
            yield page.relative_to(ROOT).as_posix(), text


def code_texts():
    """(name, text) of each docstring and of each block of comments of the package."""
    documented = ast.Module, ast.ClassDef, ast.FunctionDef
    for path in sorted((ROOT / "skpriv").rglob("*.py")):
        source, tree = parsed(path)
        name = path.relative_to(ROOT).as_posix()
        for node in nodes(tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield name, re.split(r"\n(?:Examples|References)\n-+", text)[0]
        comments, last = [], -2
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                if token.start[0] != last + 1:
                    comments.append("")
                comments[-1] += token.string.lstrip("# ") + "\n"
                last = token.start[0]
        yield from ((name, comment) for comment in comments)


def inversions(texts):
    """Number of sentences, and those that begin with what is not their subject."""
    count, inverted = 0, []
    for name, text in texts:
        for sentence in split_sentences(text):
            count += 1
            if INVERSION.match(sentence) and not sentence.endswith("?"):
                inverted.append(f"{name}: {sentence}")
    return count, inverted


def test_sentences_begin_with_their_subject():
    count, inverted = inversions([*page_texts(), *code_texts()])
    assert len(inverted) * 1_000 <= MOST_INVERSIONS * count, "\n".join(inverted)


def test_inversions_are_found():
    text = "Of persons a row with a hole is left out.\n\nRows of persons with a hole are left out."
    assert inversions([("page", text)]) == (2, ["page: Of persons a row with a hole is left out."])
