"""Contributed modules that few studies need, each in its own room and imported by its own name: ``ps`` exports none.

A room here may import everything below it, but no other room of ``contrib``; nothing outside imports one. The
library finds its own extensions, such as a head or a protocol's proof, in ``pyproject.toml``, where another package
would register them too (``privstats.plug_ins``).
"""
