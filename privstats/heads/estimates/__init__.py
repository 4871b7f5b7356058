"""Estimates from noisy sums; at noise 0 each equals the plain estimate."""
