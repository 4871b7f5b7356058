"""Secure aggregation: exact sums in a ring, of masked vectors that only enough parties together can unmask."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.secagg.interactive.client import Client as Client
    from privstats.secagg.interactive.parameters import Parameters as Parameters
    from privstats.secagg.interactive.server import Server as Server
    from privstats.secagg.keys import Identity as Identity
    from privstats.secagg.roster import Roster as Roster
    from privstats.secagg.upload.helper import Helper as Helper
    from privstats.secagg.upload.helper_keys import HelperKeys as HelperKeys
    from privstats.secagg.upload.leader import Leader as Leader
    from privstats.secagg.upload.non_inclusion import check_abandoned_by_all as check_abandoned_by_all
    from privstats.secagg.upload.panel import Offer as Offer
    from privstats.secagg.upload.panel import Panel as Panel
    from privstats.secagg.upload.panel import end_of as end_of
    from privstats.secagg.upload.parameters import UploadParameters as UploadParameters
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.secagg.interactive.client": ["Client"],
            "privstats.secagg.interactive.parameters": ["Parameters"],
            "privstats.secagg.interactive.server": ["Server"],
            "privstats.secagg.keys": ["Identity"],
            "privstats.secagg.roster": ["Roster"],
            "privstats.secagg.upload.helper": ["Helper"],
            "privstats.secagg.upload.helper_keys": ["HelperKeys"],
            "privstats.secagg.upload.leader": ["Leader"],
            "privstats.secagg.upload.non_inclusion": ["check_abandoned_by_all"],
            "privstats.secagg.upload.panel": ["Offer", "Panel", "end_of"],
            "privstats.secagg.upload.parameters": ["UploadParameters"],
        },
    )
