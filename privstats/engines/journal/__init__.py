"""Crash-safe machines: every accepted message is on disk, sealed, before the process sends anything."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.engines.journal.client import JournaledClient as JournaledClient
    from privstats.engines.journal.helper import JournaledHelper as JournaledHelper
    from privstats.engines.journal.leader import JournaledLeader as JournaledLeader
    from privstats.engines.journal.server import JournaledServer as JournaledServer
    from privstats.secagg.machines import Aggregator, Peer

    _CLIENT: type[Peer] = JournaledClient  # an engine takes them wherever it takes plain machines
    _HELPER: type[Peer] = JournaledHelper
    _SERVER: type[Aggregator] = JournaledServer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.engines.journal.client": ["JournaledClient"],
            "privstats.engines.journal.helper": ["JournaledHelper"],
            "privstats.engines.journal.leader": ["JournaledLeader"],
            "privstats.engines.journal.server": ["JournaledServer"],
        },
    )
