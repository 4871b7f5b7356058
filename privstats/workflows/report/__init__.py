"""One-page HTML reports, self-contained: pictures are inside, nothing is fetched."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.workflows.report.ethics import ethics_page as ethics_page
    from privstats.workflows.report.further import finder as finder
    from privstats.workflows.report.layout import Cell as Cell
    from privstats.workflows.report.layout import Figure as Figure
    from privstats.workflows.report.layout import Finder as Finder
    from privstats.workflows.report.layout import Finding as Finding
    from privstats.workflows.report.layout import Search as Search
    from privstats.workflows.report.layout import Table as Table
    from privstats.workflows.report.layout import Text as Text
    from privstats.workflows.report.layout import render as render
    from privstats.workflows.report.page import Page as Page
    from privstats.workflows.report.page import Point as Point
    from privstats.workflows.report.page import require_extra as require_extra
    from privstats.workflows.report.page import write_page as write_page
    from privstats.workflows.report.privacy_report import Statement as Statement
    from privstats.workflows.report.privacy_report import model_finding as model_finding
    from privstats.workflows.report.privacy_report import page_of as page_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.workflows.report.ethics": ["ethics_page"],
            "privstats.workflows.report.further": ["finder"],
            "privstats.workflows.report.layout": [
                "Cell",
                "Figure",
                "Finder",
                "Finding",
                "Search",
                "Table",
                "Text",
                "render",
            ],
            "privstats.workflows.report.page": ["Page", "Point", "require_extra", "write_page"],
            "privstats.workflows.report.privacy_report": ["Statement", "model_finding", "page_of"],
        },
    )
