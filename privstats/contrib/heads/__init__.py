"""Heads of classes that few studies need; each is a name of ``privstats.heads``."""
