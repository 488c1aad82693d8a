"""The pages for users are written for a stranger: short sentences, and words of the field."""

import ast
import inspect
import re
from pathlib import Path

from registry.doors import public
from registry.refusals import frozen_words
from sizes import nodes, parsed

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "index.md", *sorted((DOCS / "user").glob("*.md"))]
# Explanations and how-tos: measurements and proofs have pages of their own
PLAIN = [DOCS / f"{name}.md" for name in (
    "linear_regression", "choosing", "epsilon", "bounds", "trust", "additive",
    "numbers", "privacy", "devices", "glm", "bandits", "accuracy",
)]  # fmt: skip
ALL = [page for page in sorted(DOCS.rglob("*.md")) if "auto_examples" not in page.parts]
LONGEST_MEAN = 20.0  # words of a sentence, on average over a page
# Words that only this project uses in this sense, with what the field says
PRIVATE_WORDS = {
    "reach": "effective sample size",
    "surety": "probability",
    "unresolved": "not estimable",
}


def sentences(text):
    """Sentences of the prose of a page: code, tables, headings and links are left out."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(:::|#|\||\s*\* -|\s+-|::::).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    paragraphs = re.split(r"\n\s*\n|\n(?=- |\d+\. )", text)
    found = []
    for paragraph in paragraphs:
        words = " ".join(paragraph.split())
        found += [part for part in re.split(r"(?<=[.!?:])\s+", words) if len(part.split()) > 2]
    return found


def test_sentences_are_short():
    """On average over each page, and each of them on the pages for users."""
    found = []
    for page in ALL:
        lengths = [len(sentence.split()) for sentence in sentences(page.read_text("utf-8"))] or [0]
        if sum(lengths) > LONGEST_MEAN * len(lengths) or max(lengths) > 45 and page in PAGES:
            found.append((page.name, max(lengths), sum(lengths) / len(lengths)))
    assert not found


MOST_NUMBERS = 0.08  # of the words of a sentence, on average over a page


def test_measurements_are_elsewhere():
    for page in PLAIN:
        words = " ".join(sentences(page.read_text("utf-8"))).split()
        numbers = [one for one in words if re.fullmatch(r"[(\[-]*[\d.]+[\d,.]*%?[),.;:\]]*", one)]
        assert len(numbers) <= MOST_NUMBERS * len(words), page.name


def test_words_are_those_of_the_field():
    for page in {*PAGES, *PLAIN}:
        words = set(re.findall(r"[a-z]+", page.read_text("utf-8").lower()))
        assert not words & set(PRIVATE_WORDS), page.name


def test_evidence_names_its_records_or_says_that_there_are_none():
    for page in (DOCS / "evidence").glob("*.md"):
        records = page.read_text("utf-8").split("\n## Records\n")[1]
        named = re.findall(r"benchmarks/results/(\w+\.json)", records)
        assert named or "no record" in records, page.name
        for name in named:
            assert (DOCS.parent / "benchmarks" / "results" / name).exists(), (page.name, name)


SECTION = re.compile(r"^\s*-{3,}\s*$")
PREPOSITIONS = {"of", "in", "for", "on", "at", "by", "as", "to", "from", "with"}


def descriptions(source):
    """(line number, first line) of each description of a parameter, attribute or result."""
    lines, section = source.split("\n"), None
    for number, line in enumerate(lines):
        if SECTION.match(line):
            section = lines[number - 1].strip()
        if '"""' in line:
            section = None
        if section not in ("Parameters", "Attributes", "Returns") or not number:
            continue
        before = lines[number - 1]
        deeper = len(line) - len(line.lstrip()) == len(before) - len(before.lstrip()) + 4
        if line.strip() and before.strip() and deeper:
            yield number + 1, line.strip()


def test_no_description_begins_with_a_preposition():
    found = []
    for file in sorted((DOCS.parent / "skpriv").rglob("*.py")):
        for number, line in descriptions(file.read_text("utf-8")):
            if line.split()[0].strip(",.:;").lower() in PREPOSITIONS:
                found.append(f"{file.name}:{number} {line}")
    assert not found


def said():
    """Sentences that users of the code see: docstrings of public names, and texts of errors."""
    yield from ((name, inspect.getdoc(thing) or "") for name, thing in public().items())
    for file in sorted((DOCS.parent / "skpriv").rglob("*.py")):
        for node in nodes(parsed(file)[1]):
            if isinstance(node, ast.Raise) and node.exc is not None:
                texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
                yield file.name, " ".join(text for text in texts if isinstance(text, str))


SLANG = re.compile(
    r"\b(surety|not resolved|unresolved|of the whole session|look behind|dearest|dearer|law of the "
    r"coefficients)\b",
    re.IGNORECASE,
)


def test_code_speaks_the_words_of_the_field():
    found = [(file, *SLANG.findall(text)) for file, text in said() if SLANG.search(text)]
    assert not found


LONGEST_DOCUMENTED, MEAN_DOCUMENTED = 45, 13.0  # words of a sentence of a public docstring


def documented():
    """Sentences of public docstrings; examples, references, tables and names are left out."""
    for name, thing in public().items():
        text = re.split(r"\n(?:Examples|References)\n-+", inspect.getdoc(thing) or "")[0]
        text = re.sub(r"^.*\n-{3,}$|^\S.* : .*$", "\n", text, flags=re.MULTILINE)
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*- )", text):
            if "===" not in paragraph:
                words = re.sub(r"``[^`]*``|`[^`]*`", "code", " ".join(paragraph.split()))
                parts = re.split(r"(?<=[.!?:;])\s+", words)
                yield from ((name, part) for part in parts if len(part.split()) > 2)


def test_sentences_of_public_docstrings_are_short():
    found = {(name, len(part.split())) for name, part in documented()}
    lengths = [len(part.split()) for part in {part for _, part in documented()}]
    assert sum(lengths) / len(lengths) <= MEAN_DOCUMENTED
    assert not {one for one in found if one[1] > LONGEST_DOCUMENTED}


FROZEN = 34  # it may only fall


def test_few_tests_freeze_the_wording_of_a_sentence():
    """What is left are words that are themselves the guarantee, lists of columns, or labels."""
    files = Path(__file__).parent.rglob("*.py")
    found = {(str(file), text) for file in files for text in frozen_words(parsed(file)[1])}
    assert len(found) <= FROZEN, "name the argument and the remedy, joined by '.*'"
    assert len(found) == FROZEN, "lower FROZEN, so that it cannot rise again"
    assert list(frozen_words(ast.parse("raises(match='one two three.*four five six')"))) == []
    assert list(frozen_words(ast.parse("raises(match='one two three four five six')"))) != []
