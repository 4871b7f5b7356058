"""Workflows around a plan before its deployment: choose its bounds, simulate it, score it, report on it.

``simulate`` runs a full cohort in one process, ``suggest`` derives clip norm and grid from public data, ``score``
scores a head, ``report`` writes a page. ``privstats.contrib.sweep`` scores heads over many plans. No party and no
server of a real session needs any of them.
"""
