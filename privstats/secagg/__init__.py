"""Secure aggregation: exact sums in a ring, under masks that only enough honest clients together can lift."""

from privstats.secagg.client import Client
from privstats.secagg.keys import Identity
from privstats.secagg.parameters import Parameters
from privstats.secagg.roster import Roster
from privstats.secagg.server import Server

__all__ = ["Client", "Identity", "Parameters", "Roster", "Server"]
