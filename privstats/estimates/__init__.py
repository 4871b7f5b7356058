"""Estimates from noisy sums that a course and the heads share: spectra, weights, and the recipe of refinement.

Functions of real numbers and known noise levels, without plans, releases or randomness. The course uses them to choose
what the next round publishes, and the heads to choose their predictions.
"""
