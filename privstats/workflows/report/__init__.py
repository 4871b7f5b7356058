"""One-page HTML reports, self-contained: pictures are inside, nothing is fetched."""

from privstats.workflows.report.findings import Finder, Finding, Search, finder
from privstats.workflows.report.layout import Cell, Figure, Table, Text, render
from privstats.workflows.report.model import model_finding
from privstats.workflows.report.page import Chart, Curve, Page, require_extra, write_page
from privstats.workflows.report.privacy_report import Statement, page_of
from privstats.workflows.report.registry import TO_WRITE, registry_entry

__all__ = [
    "TO_WRITE",
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
    "model_finding",
    "page_of",
    "registry_entry",
    "render",
    "require_extra",
    "write_page",
]
