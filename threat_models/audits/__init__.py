"""Audits that try to falsify the privacy claims of privstats."""
