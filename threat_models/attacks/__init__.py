"""Attacks on releases: pure functions from the attacker's view to a guess."""
