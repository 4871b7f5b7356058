"""Every page is one file on one sheet, and says which package is missing."""

import re
import sys
from importlib.resources import files

import pytest

from privstats.errors import MissingExtraError
from privstats.workflows.report import layout, render

TEMPLATES = [
    file
    for package in ("privstats.workflows.report", "threat_models")
    for file in files(package).iterdir()
    if file.name.endswith(".html") and file.name not in ("layout.html", "parts.html")
]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda file: file.name)
def test_there_is_one_style_and_no_second_copy(template):
    text = template.read_text("utf-8")
    assert text.startswith('{% extends "layout.html" %}')
    assert "<style" not in text


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match="a page needs jinja2"):
        render(layout.__package__, "privacy_report.html")


def test_the_sheet_prints_and_scrolls_tables_in_their_box():
    style = files(layout.__package__).joinpath("layout.html").read_text("utf-8")
    assert re.search(r"\.wide \{[^}]*overflow-x: auto", style)
    assert "@media print" in style
    assert "width=device-width" in style
