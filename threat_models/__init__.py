"""Attacks on privstats, and audits that compare measured leakage with the proved limit."""
