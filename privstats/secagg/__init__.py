"""Secure aggregation: exact sums in a ring, of masked vectors that only enough parties together can unmask."""

from privstats.secagg.interactive.client import Client
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.interactive.server import Server
from privstats.secagg.keys import Identity
from privstats.secagg.roster import Roster
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.non_inclusion import check_abandoned_by_all
from privstats.secagg.upload.panel import HelperKeys, Offer, Panel, end_of
from privstats.secagg.upload.parameters import UploadParameters

__all__ = [
    "Client",
    "Helper",
    "HelperKeys",
    "Identity",
    "Leader",
    "Offer",
    "Panel",
    "Parameters",
    "Roster",
    "Server",
    "end_of",
]
__all__ += ["UploadParameters", "check_abandoned_by_all"]
