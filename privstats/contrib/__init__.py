"""Contributed modules that few studies need, each imported by its own name: ``ps`` exports none.

A room here imports no other room of ``contrib``, and nothing outside imports one. Extensions are rows of doors,
announced in ``pyproject.toml`` (``privstats.doors``).
"""
