"""What a party brings to a stream, and what its server weighs: records that come and go, and exact sums under seal.

Files and their rules; no session is in here. Under ``folder`` and ``parts``.
"""

from privstats.engines.network.streams.inbox import RecordInbox
from privstats.engines.network.streams.totals import Totals

__all__ = ["RecordInbox", "Totals"]
