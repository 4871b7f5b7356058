"""Sphinx configuration: MyST pages, furo, and the API reference from docstrings."""

import re
import sys
from pathlib import Path

from sphinx.domains.python import PythonDomain

from privstats.inference.figures import LINES
from privstats.version import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "privstats"
copyright = "the privstats authors, Apache-2.0"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_gallery.gen_gallery",
    "formulas",
    "certificate_page",
    "measurement_pages",
]
html_math_renderer = "mathml"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery", "**sg_execution_times.rst"]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_block"]
myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Guarantee", "notes_style")]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_title = f"privstats {__version__}"
html_theme_options = {  # the first colour of all figures (privstats.inference.figures.LINES), and what it is on black
    "light_css_variables": {"color-brand-primary": LINES[0], "color-brand-content": LINES[0]},
    "dark_css_variables": {"color-brand-primary": "#6db3e8", "color-brand-content": "#6db3e8"},
}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "remove_config_comments": True,
    "show_memory": False,
    "thumbnail_size": (640, 448),
    "min_reported_time": 3600,
    "show_signature": False,
    "download_all_examples": True,
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "house_style.apply"),
}


_CODE_OR_BAR = re.compile(r"``.*?``|`[^`]*`|^ *>>> .*?(?=\n\s*\n|\Z)|\|", re.DOTALL | re.MULTILINE)


class _QuickDomain(PythonDomain):
    """Looks up names of documented objects alone: Sphinx compares every type of a signature with all of them."""

    _last_names: tuple[int, frozenset[str]] = (0, frozenset())

    def find_obj(self, env, modname, classname, name, type, searchmode=0):
        """Return the objects of this name, and none where no documented object ends with its last part."""
        if self._last_names[0] != len(self.objects):
            self._last_names = len(self.objects), frozenset(each.rpartition(".")[2] for each in self.objects)
        if name.removesuffix("()").rpartition(".")[2] not in self._last_names[1]:
            return []
        return super().find_obj(env, modname, classname, name, type, searchmode)


def _plain_prose(app, what, name, obj, options, lines):
    """|x| is an absolute value, not a substitution; code and examples stay as they are."""
    lines[:] = _CODE_OR_BAR.sub(lambda found: r"\|" if found[0] == "|" else found[0], "\n".join(lines)).split("\n")


def _whole_sentences(app, what, name, obj, options, lines):
    """A colon in a property's first line does not end a type, which is what napoleon made of it."""
    types = [line for line in lines if line.startswith(":type: ")]
    if what == "property" and types:
        lines[:] = [line for line in lines if line not in types]
        lines[0] = f"{types[0].removeprefix(':type: ')}: {lines[0]}"


def _skip(app, what, name, obj, skip, options):
    """Methods that scikit-learn documents, and fields of named tuples, which stand under "Attributes"."""
    routing = name.startswith("set_") and name.endswith("_request")
    return True if routing or type(obj).__name__ == "_tuplegetter" else skip


def setup(app):
    """Hook all into autodoc."""
    app.add_domain(_QuickDomain, override=True)
    app.connect("autodoc-process-docstring", _plain_prose, priority=100)  # napoleon has 500
    app.connect("autodoc-process-docstring", _whole_sentences, priority=900)
    app.connect("autodoc-skip-member", _skip)
