"""Estimates from noisy sums that both a course and the heads need: spectra, weights, and the recipe of refinement.

No plan, no release, no randomness: functions of real numbers and of known noise levels. Below the course, which decides
by them what the next round publishes, and below the heads, which decide by them what is predicted.
"""
