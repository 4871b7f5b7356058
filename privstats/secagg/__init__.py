"""Secure aggregation: exact sums in a ring, under covers that only enough honest parties together can lift."""

from privstats.secagg.interactive.client import Client
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.interactive.server import Server
from privstats.secagg.keys import Identity
from privstats.secagg.panel import Offer, Panel
from privstats.secagg.roster import Roster
from privstats.secagg.upload.keys import HelperKeys

__all__ = ["Client", "HelperKeys", "Identity", "Offer", "Panel", "Parameters", "Roster", "Server"]
