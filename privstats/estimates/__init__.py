"""Estimates from noisy sums that a course and the heads share: spectra, weights, and the recipes of refinement.

Functions of arrays and known noise levels, without plans, releases or randomness. A course uses them, so they are a
layer below heads.
"""
