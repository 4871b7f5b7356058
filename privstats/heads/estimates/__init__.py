"""Estimates from noisy sums: counts, means, covariances, subspaces, penalties and weights.

Heads call these functions on the evidence before they solve their closed form; with noise 0 each is the plain estimate.
"""
