"""Placeholder while the room is being built."""
