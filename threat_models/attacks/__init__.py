"""Attacks on what a release shows: pure functions from what the attacker sees to what it learns."""
