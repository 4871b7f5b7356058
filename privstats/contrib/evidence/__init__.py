"""One table of a plan's evidence for an authority, and the bill of materials of its cryptography."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.evidence.bill_of_materials import cbom as cbom
    from privstats.contrib.evidence.table import evidence_page as evidence_page
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.evidence.bill_of_materials": ["cbom"],
            "privstats.contrib.evidence.table": ["evidence_page"],
        },
    )
