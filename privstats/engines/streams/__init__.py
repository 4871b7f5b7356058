"""A stream in a folder: every party, the server and their journals on one machine, durable through any kill.

For studies and tests on one machine: the parties' ledgers, holdings and sessions are the real ones, and only the
network is missing.
"""

from privstats.engines.streams.epoch import run_epoch
from privstats.engines.streams.folder import Folder

__all__ = ["Folder", "run_epoch"]
