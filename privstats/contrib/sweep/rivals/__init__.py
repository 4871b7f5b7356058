"""Rivals of a sweep's heads: DP-SGD on pooled records, FedAvg, FedProx, and a one-shot ensemble of local models.

Each rival is one module, announced by one entry point of the group ``privstats.rivals``.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.sweep.rivals.base import FederatedRival as FederatedRival
    from privstats.contrib.sweep.rivals.base import Rival as Rival
    from privstats.contrib.sweep.rivals.registry import GROUP as GROUP
    from privstats.contrib.sweep.rivals.registry import rivals as rivals
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.sweep.rivals.base": ["FederatedRival", "Rival"],
            "privstats.contrib.sweep.rivals.registry": ["GROUP", "rivals"],
        },
    )
