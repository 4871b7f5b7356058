"""Engines: what carrying a session between machines costs beside the session."""
