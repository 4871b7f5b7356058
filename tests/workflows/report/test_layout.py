"""Every page is one file on one sheet, and says which package is missing."""

import re
import sys
from importlib.resources import files

import pytest

from privstats.errors import MissingExtraError
from privstats.workflows.report import Figure, Page, layout, render, write_page
from tests.without import room_of

from .conftest import PLAN

TEMPLATES = [
    file
    for package in ("privstats.workflows.report", "threat_models")
    if not room_of(package)
    for file in files(package).iterdir()
    if file.name.endswith(".html") and file.name not in ("layout.html", "parts.html")
]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda file: file.name)
def test_there_is_one_style_and_no_second_copy(template):
    text = template.read_text("utf-8")
    assert text.startswith('{% extends "layout.html" %}')
    assert "<style" not in text


def test_a_picture_is_at_most_a_quarter_larger_than_drawn(tmp_path):
    dots = 690
    png = b"\x89PNG" + bytes(12) + dots.to_bytes(4) + bytes(8)
    chart = Figure.of_png("accuracy against epsilon", "", png)
    write_page(Page("A sweep", "accuracy", chart, ("head",), [("LDA",)], [], PLAN), tmp_path / "scores.html")
    (width,) = re.findall(
        r'<img alt="accuracy against epsilon" width="(\d+)"', (tmp_path / "scores.html").read_text("utf-8")
    )
    assert int(width) == round(dots / 150 * 96 * 1.25)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match="a page needs jinja2"):
        render(layout.__package__, "privacy_report.html")


def test_the_sheet_prints_and_scrolls_tables_in_their_box():
    style = files(layout.__package__).joinpath("layout.html").read_text("utf-8")
    assert re.search(r"\.wide \{[^}]*overflow-x: auto", style)
    assert "@media print" in style
    assert "width=device-width" in style
