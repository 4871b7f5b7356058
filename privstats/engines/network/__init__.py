"""Sessions between machines: folders, a host, parties and a loop, over any transport that carries bytes.

The transport is not trusted for the sum; trust rests on the roster.
"""
