"""Streams: records that enter and leave over the epochs, released every epoch under one promise.

``stream`` is the course, ``mechanisms`` its matrices; ``record_registry`` keeps a record from entering twice, in the
ledger's file (``registry_log``, ``registry_index``). ``party`` and ``totals`` are what ``engines.network`` asks for at
a party and at the server; ``local_stream`` is a stream on one machine, ``simulation`` one in a process. Public names
are those of ``privstats.course`` and ``privstats.moments``; the command is ``privstats stream``.
"""
