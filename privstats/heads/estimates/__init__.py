"""Estimates from noisy sums: counts, means, covariances, subspaces, penalties and weights.

Not models and not rules. Between the evidence and a head's closed form; with noise 0 each is the plain estimate.
"""
