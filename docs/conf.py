"""Sphinx settings: python -m sphinx docs docs/_build."""

import skpriv

project = "skpriv"
author = "The skpriv developers"
version = release = skpriv.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
myst_heading_anchors = 3
