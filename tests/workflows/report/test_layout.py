"""Every page is one file on one sheet, and says which package is missing."""

import base64
import re
import sys
from importlib.resources import files

import pytest

from privstats.errors import MissingExtraError
from privstats.workflows.report import Chart, Curve, Page, Point, layout, render, write_page
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


def test_a_chart_is_read_on_a_phone_and_not_blown_up_on_a_desk(tmp_path):
    """Type of 9 points is 9 pixels where a picture has 343, and a picture is at most a quarter larger than drawn."""
    pytest.importorskip("matplotlib", reason="the report extra is not installed")
    curve = Curve("LDA", [Point("LDA", 1.0, 0.5, 0.1), Point("LDA", 3.0, 0.6, 0.1)])
    scores = Page("A sweep", Chart("accuracy", [curve]), ("head",), [("LDA",)], [], PLAN)
    write_page(scores, tmp_path / "scores.html")
    width, png = re.search(
        r'<img alt="accuracy against epsilon" width="(\d+)" src="data:image/png;base64,([^"]*)"',
        (tmp_path / "scores.html").read_text("utf-8"),
    ).groups()
    inches = int.from_bytes(base64.b64decode(png)[16:20]) / 150
    assert 9 * 343 / (72 * inches) > 9
    assert int(width) == round(inches * 96 * 1.25)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match="a page needs jinja2"):
        render(layout.__package__, "privacy_report.html")


def test_the_sheet_prints_and_scrolls_tables_in_their_box():
    style = files(layout.__package__).joinpath("layout.html").read_text("utf-8")
    assert re.search(r"\.wide \{[^}]*overflow-x: auto", style)
    assert "@media print" in style
    assert "width=device-width" in style
