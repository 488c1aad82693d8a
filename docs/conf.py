"""Sphinx settings: ``python -m sphinx -W docs docs/_build``."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import skpriv

project = "skpriv"
author = "The skpriv developers"
version = release = skpriv.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_prev_next": False,
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "github_url": "https://github.com/skpriv/skpriv",
    "show_toc_level": 1,
    "navigation_with_keys": False,
}
html_title = f"skpriv {release}"
toc_object_entries_show_parents = "hide"  # `fit()`: the name of its class would be cut
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
templates_path = ["_templates"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]

autosummary_generate = True
autodoc_typehints = "none"  # the sections of parameters have the types in words
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False  # autosummary lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "thumbnail_size": (800, 560),  # twice as wide as it is shown, so that labels can be read
    "subsection_order": [
        "../examples/first_fit",
        "../examples/choose_and_check",
        "../examples/panels",
        "../examples/papers",
        "../examples/production",
    ],
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
}

ROOMS = {
    "skpriv": "Budgets, errors and model files",
    "skpriv.linear_model": "Regressors",
    "skpriv.preprocessing": "Before the regressor",
    "skpriv.inspection": "Coefficients and curves",
    "skpriv.metrics": "Metrics",
    "skpriv.model_selection": "Choosing epsilon and parameters",
    "skpriv.bandits": "Bandits",
    "skpriv.privacy": "Privacy: sessions, noise, accounting",
    "skpriv.records": "Rows",
    "skpriv.protocol": "Reports of real devices",
    "skpriv.audit": "Audits",
    "skpriv.datasets": "Data sets",
    "skpriv.extend": "Extending skpriv",
    "skpriv.exceptions": "Errors",
}


def write_reference(folder):
    """Write the page that lists every public name of every room, from their ``__all__``."""
    lines, seen = ["API reference", "=============", ""], []
    for room, title in ROOMS.items():  # a name is shown where it comes first
        if find_spec(room) is None:
            continue
        known = {name: getattr(import_module(room), name) for name in import_module(room).__all__}
        names = [name for name, thing in known.items() if not any(thing is one for one in seen)]
        names = sorted(set(names) - {"__version__"}, key=str.lower)
        seen += known.values()
        lines += [title, "-" * len(title), "", f".. currentmodule:: {room}", ""]
        lines += [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
        lines += [*(f"   {name}" for name in names), ""]
    folder.mkdir(exist_ok=True)
    (folder / "api.rst").write_text("\n".join(lines), encoding="utf-8")


write_reference(Path(__file__).parent / "generated")


def skip_inherited(app, what, name, obj, skip, options):
    """Leave what scikit-learn documents to scikit-learn: its pages have the labels it refers to."""
    theirs = (getattr(obj, "__module__", None) or "").startswith("sklearn")
    return True if theirs or name.endswith("_request") else None


def link_pages(app, what, name, obj, options, lines):
    """Make links of the pages that a docstring names, such as docs/bounds.md."""
    lines[:] = [re.sub(r"(?:``)?\bdocs/([\w/]+)\.md(?:``)?", r":doc:`/\1`", line) for line in lines]


def setup(app):
    """Register the hooks."""
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", link_pages)
