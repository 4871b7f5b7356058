"""Refinement rounds beside the strongest private training that others offer."""
