"""Refusals that come before anything is charged, and of private values after the charge."""

import ast
import re
from contextlib import contextmanager

import pytest

from skpriv import BudgetAccountant
from skpriv.exceptions import InvalidValues
from skpriv.records import INVALID_VALUES


@contextmanager
def uncharged(match=None, error=ValueError, epsilon=10.0):
    """An error of which an accountant with so much to spend sees no charge."""
    with BudgetAccountant(epsilon, 1e-3) as accountant, pytest.raises(error, match=match) as caught:
        yield caught
    assert accountant.charges == []


@contextmanager
def charged():
    """The one sentence about a private value, after one charge; nothing hangs on it but itself."""
    with BudgetAccountant(1.0, 1e-6) as accountant, pytest.raises(InvalidValues) as caught:
        yield
    assert len(accountant.charges) == 1 and str(caught.value) == INVALID_VALUES
    assert caught.value.__context__ is None and caught.value.__cause__ is None


def one_sentence(code, capsys, *words):
    """A command ended with exit code 2, nothing on stdout, and one line with these words."""
    out, err = capsys.readouterr()
    assert code == 2 and out == "" and err.count("\n") == 1
    for word in words:
        assert word in err
    return err


RUN = 6  # words of one sentence; what an error must name takes fewer


def frozen_words(tree):
    """Texts of a test that hold a run of so many words of a sentence, and so its very wording.

    A rule names the argument, the remedy, or what is damaged: ``"bounds_X.*data_norm"``.
    """
    for node in ast.walk(tree):
        texts = [node.value] if isinstance(node, ast.keyword) and node.arg == "match" else []
        if isinstance(node, ast.Compare):
            texts = [node.left, *node.comparators]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            texts = node.args if node.func.id in ("uncharged", "held") else texts
        for text in (part for one in texts for part in ast.walk(one)):
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                runs = re.split(r"\.\*|\|", text.value)
                if any(len(re.findall("[A-Za-z]+", run)) >= RUN for run in runs):
                    yield text.value
