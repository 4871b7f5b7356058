"""Attacks on privstats, and the audits that hold measured leakage against the proved limit."""
