"""Names of :mod:`privstats.contrib.sweep.rivals`, each loaded on first use."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.sweep.rivals import Rival as Rival
    from privstats.contrib.sweep.rivals import rivals as rivals
else:
    __getattr__, __dir__ = lazy_names(__name__)
