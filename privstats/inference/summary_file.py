"""A table as a file, in the form that its ending says; Word through pandoc, a program of its own."""

from __future__ import annotations

import html
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from privstats.errors import MissingExtraError, ReleaseError
from privstats.files.atomic import atomic_write

if TYPE_CHECKING:
    from privstats.inference.summary import Summary

__all__ = ["ENDINGS", "require_ending", "write_summary"]

ENDINGS = (".txt", ".csv", ".html", ".tex", ".docx")
"""Of the files that :func:`write_summary` writes."""

_SECONDS = 60


def require_ending(path: Path, *, methods: bool = False) -> None:
    """Refuse a file that cannot be written, before anything is computed.

    Raises:
        ReleaseError: another ending, or a .csv file for a paragraph.
        MissingExtraError: a .docx file, and pandoc is not installed.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ReleaseError(
            f"a table is written as {', '.join(ENDINGS)}, and {path.name} ends otherwise; name such a file"
        )
    if ending == ".csv" and methods:
        raise ReleaseError("a .csv file has no room for the paragraph of Methods: name another ending, or leave it out")
    if ending == ".docx" and shutil.which("pandoc") is None:
        raise MissingExtraError(
            "a .docx file is written by pandoc, which is not on the PATH: install it (https://pandoc.org), or name a "
            ".html file, which Word opens"
        )


def write_summary(summary: Summary, path: Path, *, methods: bool) -> None:
    """Write a table, and where asked for its paragraph, as the ending of the file says.

    Raises:
        ReleaseError: another ending, no room for the paragraph, or pandoc did not write the file.
        MissingExtraError: a .docx file, and pandoc is not installed.
        PrivstatsError: the file cannot be written.
    """
    require_ending(path, methods=methods)
    paragraph = summary.methods if methods else ""
    match path.suffix.lower():
        case ".docx":
            _through_pandoc(_page(summary, paragraph), path)
            return
        case ".html":
            text = _page(summary, paragraph)
        case ".tex":
            text = summary.as_latex() + (f"\n\n{summary.escaped_methods}\n" if paragraph else "\n")
        case ".csv":
            text = summary.as_csv()
        case _:
            text = summary.as_text() + (f"\n\n{paragraph}\n" if paragraph else "\n")
    atomic_write(path, text.encode(), shared=True)


def _page(summary: Summary, paragraph: str) -> str:
    more = f"<p>{html.escape(paragraph)}</p>" if paragraph else ""
    title = html.escape(summary.title)
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title>{summary.as_html()}{more}</html>\n'
    )


def _through_pandoc(page: str, path: Path) -> None:
    """Raises ReleaseError where pandoc fails, in its last line."""
    command = [shutil.which("pandoc") or "pandoc", "--from=html", "--to=docx", f"--output={path}"]
    try:
        done = subprocess.run(command, input=page.encode(), capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReleaseError(f"pandoc did not write {path} ({type(error).__name__}); name a .html file") from None
    if done.returncode:
        *_, last = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise ReleaseError(f"pandoc did not write {path}: {last}; name another file, or a .html file, which Word opens")
