"""Estimates from noisy sums, for heads."""
