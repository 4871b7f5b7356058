"""Sphinx configuration: MyST pages, furo, and the API reference from docstrings."""

from privstats.version import __version__

project = "privstats"
copyright = "the privstats authors, Apache-2.0"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Guarantee", "notes_style")]

html_theme = "furo"
html_title = f"privstats {__version__}"


def _plain_prose(app, what, name, obj, options, lines):
    """|x| is an absolute value, not a substitution."""
    lines[:] = ["`".join(p if i % 2 else p.replace("|", r"\|") for i, p in enumerate(s.split("`"))) for s in lines]


def _whole_sentences(app, what, name, obj, options, lines):
    """A colon in a property's first line does not end a type, which is what napoleon made of it."""
    types = [line for line in lines if line.startswith(":type: ")]
    if what == "property" and types:
        lines[:] = [line for line in lines if line not in types]
        lines[0] = f"{types[0].removeprefix(':type: ')}: {lines[0]}"


def _skip_routing(app, what, name, obj, skip, options):
    """scikit-learn's metadata routing methods are generated and documented there."""
    return True if name.startswith("set_") and name.endswith("_request") else skip


def setup(app):
    """Hook both into autodoc."""
    app.connect("autodoc-process-docstring", _plain_prose, priority=100)  # napoleon has 500
    app.connect("autodoc-process-docstring", _whole_sentences, priority=900)
    app.connect("autodoc-skip-member", _skip_routing)
