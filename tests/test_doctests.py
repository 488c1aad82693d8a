"""The examples in docstrings, of the package that is imported: installed or not."""

import doctest
import importlib
import pkgutil
from functools import cache

import pytest

import skpriv

MODULES = ["skpriv"] + [
    module.name
    for module in pkgutil.walk_packages(skpriv.__path__, "skpriv.")
    if not module.name.endswith("__main__")
]


@cache
def examples(name):
    """The docstrings of a module that have examples: each one that is run costs a millisecond."""
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in examples(name):
        runner.run(test)
    assert not runner.failures


def test_there_are_examples():
    assert sum(len(examples(name)) for name in MODULES) > 100
