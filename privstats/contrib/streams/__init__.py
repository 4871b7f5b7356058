"""Streams: records that enter and leave over the epochs, released every epoch under one promise."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.streams.moments_delta import MomentsDelta as MomentsDelta
    from privstats.contrib.streams.moments_delta import PersonDelta as PersonDelta
    from privstats.contrib.streams.person_rows import PersonRows as PersonRows
    from privstats.contrib.streams.record_registry import Pending as Pending
    from privstats.contrib.streams.record_registry import PersonRegistry as PersonRegistry
    from privstats.contrib.streams.record_registry import RecordRegistry as RecordRegistry
    from privstats.contrib.streams.record_registry import RegistryCharge as RegistryCharge
    from privstats.contrib.streams.stream import Stream as Stream
    from privstats.contrib.streams.stream import StreamTotal as StreamTotal
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.streams.moments_delta": ["MomentsDelta", "PersonDelta"],
            "privstats.contrib.streams.person_rows": ["PersonRows"],
            "privstats.contrib.streams.record_registry": [
                "Pending",
                "PersonRegistry",
                "RecordRegistry",
                "RegistryCharge",
            ],
            "privstats.contrib.streams.stream": ["Stream", "StreamTotal"],
        },
    )
