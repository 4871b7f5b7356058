"""Noise: how fast it is drawn and what other libraries say it is worth."""
