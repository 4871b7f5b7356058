"""Clients that differ in domain and in label mix: what alignment and personal heads gain there, and what they cost."""
