"""Secure aggregation: exact sums in a ring, under masks that only enough honest clients together can lift."""

from privstats.secagg.interactive.client import Client
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.interactive.server import Server
from privstats.secagg.keys import Identity
from privstats.secagg.roster import Roster

__all__ = ["Client", "Identity", "Parameters", "Roster", "Server"]
