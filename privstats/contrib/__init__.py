"""Contributed modules that few studies need, each in its own room and imported by its own name: ``ps`` exports none.

A room here may import everything below it, but no other room of ``contrib``; nothing outside imports one. What the
library itself asks for, such as a head or a protocol's proof, is registered in ``pyproject.toml`` as another package
would register it (``privstats.plug_ins``).
"""
