"""One-page HTML reports, self-contained: pictures are inside, nothing is fetched."""

from privstats.workflows.report.findings import Finder, Finding, Search, finder
from privstats.workflows.report.officer import Statement, page_of
from privstats.workflows.report.page import Chart, Curve, Page, require_extra, write_page
from privstats.workflows.report.sheet import Cell, Figure, Table, Text, render

__all__ = [
    "Cell",
    "Chart",
    "Curve",
    "Figure",
    "Finder",
    "Finding",
    "Page",
    "Search",
    "Statement",
    "Table",
    "Text",
    "finder",
    "page_of",
    "render",
    "require_extra",
    "write_page",
]
