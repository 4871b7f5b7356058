"""Streams: records that enter and leave over the epochs, released every epoch under one promise.

Start with ``stream``; ``record_registry`` stops a record from entering twice. Public names are in ``privstats.course``
and ``privstats.moments``.
"""
