"""One client's own head, fitted at the client behind a release. Its names are names of ``privstats.heads``."""
