"""One client's own head; its names are in ``privstats.heads``."""
