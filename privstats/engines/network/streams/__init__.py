"""Files of streams: records that a party has brought, and the exact sums, under seal, that a server weighs.

``folder`` and ``parts`` use them; sessions are elsewhere.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.engines.network.streams.inbox import RecordInbox as RecordInbox
    from privstats.engines.network.streams.totals import Totals as Totals
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
