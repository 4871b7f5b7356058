"""Engines around the protocol machines: the only code that moves bytes between parties or to disk."""
