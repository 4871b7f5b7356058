"""Streams: noise in totals, and accuracy over the epochs against releasing again each time."""
