"""Workflows around a plan before its deployment: choose its bounds, simulate it, score it, report on it.

``simulate`` runs a whole cohort in one process, ``suggest`` derives clip norm and grid from public data, ``sweep``
scores heads, ``report`` writes a page. No party and no server of a real session needs any of them.
"""
