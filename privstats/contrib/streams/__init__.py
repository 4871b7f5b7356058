"""Streams: records that enter and leave over the epochs, released every epoch under one promise.

Public names are in ``privstats.course`` and ``privstats.moments``.
"""
