"""Secure aggregation: what masking costs beside its keystream."""
