"""Rivals of a sweep's heads: DP-SGD on pooled records, FedAvg, FedProx, and a one-shot ensemble of local models.

Each rival is one module, announced by one entry point of the group ``privstats.rivals``.
"""

from privstats.contrib.sweep.rivals.base import FederatedRival, Rival
from privstats.contrib.sweep.rivals.registry import GROUP, rivals

__all__ = ["GROUP", "FederatedRival", "Rival", "rivals"]
