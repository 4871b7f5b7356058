"""Fit weights, class covariances and subspaces of heads to noisy sums."""
