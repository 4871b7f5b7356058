"""Synthetic rows of many parties beside AIM and MST of one curator: what models learn from them, and their tables."""
