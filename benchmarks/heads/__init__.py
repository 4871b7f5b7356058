"""Heads: what they reach, without and under noise, beside what others would use."""
