"""Hazard ratios of a survival analysis: the table, whether hazards are proportional, and the widths to expect."""
