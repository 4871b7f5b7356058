"""Estimates from noisy sums: counts, means, covariances, subspaces, penalties and weights.

At noise 0 each equals the plain estimate.
"""
