"""Machines that survive being killed: what was accepted is on disk, sealed, before anything leaves the process."""

from privstats.engines.journal.client import JournaledClient
from privstats.engines.journal.server import JournaledServer

__all__ = ["JournaledClient", "JournaledServer"]
