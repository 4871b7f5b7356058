"""Files of streams: records that a party has brought, and the exact sums, under seal, that a server weighs.

``folder`` and ``parts`` use them; sessions are elsewhere.
"""

from privstats.engines.network.streams.inbox import RecordInbox
from privstats.engines.network.streams.totals import Totals

__all__ = ["RecordInbox", "Totals"]
