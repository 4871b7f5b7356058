"""Adds the pages of measurements, which are stored in ``benchmarks/``, to the site.

Links between these pages and ``docs/`` are relative paths, so they work in the repository and on the site. The side bar
does not list these pages and the search does not read them: their many numbers would win most searches.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sphinx.project import Project

__all__ = ["MeasuredProject", "setup"]

_ROOT = Path(__file__).parents[1]


class MeasuredProject(Project):
    """Pages of ``docs/`` together with each ``benchmarks/**/*numbers.md``."""

    def discover(self, exclude_paths: Iterable[str] = (), include_paths: Iterable[str] = ("**",)) -> set[str]:
        """Find the pages of both folders. A page of measurements is named by its path in the repository."""
        super().discover(exclude_paths, include_paths)
        for page in (_ROOT / "benchmarks").rglob("*numbers.md"):
            name = page.relative_to(_ROOT).with_suffix("").as_posix()
            self.docnames.add(name)
            self._path_to_docname[page] = name
            self._docname_to_path[name] = Path(os.path.relpath(page, self.srcdir))
        return self.docnames


def _add_pages(app: Any) -> None:
    project = MeasuredProject(app.srcdir, app.config.source_suffix)
    project.restore(app.project)
    app.project = app.env.project = project


def _hide_page(app: Any, _doctree: Any) -> None:
    document = app.env.current_document.docname
    if document.startswith("benchmarks/"):
        app.env.metadata[document] |= {"orphan": True, "nosearch": True}


def setup(app: Any) -> dict[str, bool]:
    """Replace the project before Sphinx looks for pages, and hide its pages from the side bar and the search."""
    app.connect("builder-inited", _add_pages)
    app.connect("doctree-read", _hide_page, priority=900)  # Sphinx collects a page's metadata at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
