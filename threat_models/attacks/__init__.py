"""Attacks, one file each: what every one of them wins is measured by the game, never by itself."""
