"""Prove that a vector shared between a leader and helpers is one that an honest client could send.

A client proves, every member answers linear functions of its own share, and the leader decides on the answers' sums.
Each rule has a double in ``tests/contrib/proofs/test_doubles.py``: the attack works where just that rule is missing.
docs/proofs/reports.md has the full argument.
"""
