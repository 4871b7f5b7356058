"""Workflows around a plan before deployment: choose its bounds, simulate it, score it, report on it.

No party or server of a real session needs them. ``privstats.contrib.sweep`` scores heads over many plans.
"""
