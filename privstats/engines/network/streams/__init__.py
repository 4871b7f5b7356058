"""A stream in a folder: every party, the server and their journals on one machine, durable through any kill.

For studies and tests on one machine: the parties' ledgers, holdings and sessions are the real ones, and only the
network is missing. What a party has brought and what a server weighs is the same between machines.
"""

from privstats.engines.network.streams.epoch import run_epoch
from privstats.engines.network.streams.folder import Folder
from privstats.engines.network.streams.inbox import RecordInbox
from privstats.engines.network.streams.totals import Totals

__all__ = ["Folder", "RecordInbox", "Totals", "run_epoch"]
