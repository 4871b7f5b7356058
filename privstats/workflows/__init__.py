"""Choose, simulate, score and report on a plan before deployment, and read tables by name after it.

No party or server of a real session needs this.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.workflows import tables as tables
else:
    __getattr__, __dir__ = lazy_names(__name__, {"privstats.workflows": ["tables"]})
