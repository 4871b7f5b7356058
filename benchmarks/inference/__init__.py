"""Inference: how often intervals from noisy sums cover, and how wide they are."""
