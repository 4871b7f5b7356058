"""Crash-safe machines: every accepted message is on disk, sealed, before the process sends anything."""

from typing import TYPE_CHECKING

from privstats.engines.journal.client import JournaledClient
from privstats.engines.journal.helper import JournaledHelper
from privstats.engines.journal.leader import JournaledLeader
from privstats.engines.journal.server import JournaledServer

if TYPE_CHECKING:  # for mypy: an engine takes them wherever it takes plain machines
    from privstats.secagg.machines import Aggregator, Peer

    _CLIENT: type[Peer] = JournaledClient
    _HELPER: type[Peer] = JournaledHelper
    _SERVER: type[Aggregator] = JournaledServer

__all__ = ["JournaledClient", "JournaledHelper", "JournaledLeader", "JournaledServer"]
