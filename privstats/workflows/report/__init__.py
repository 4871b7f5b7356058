"""One-page HTML reports, self-contained: pictures are inside, nothing is fetched."""

from privstats.workflows.report.page import Chart, Curve, Page, require_extra, write_page

__all__ = ["Chart", "Curve", "Page", "require_extra", "write_page"]
