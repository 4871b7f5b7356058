"""Proofs that a vector which is shared between a leader and helpers is one that an honest client could send.

Numbers alone: no schema, no noise, no machine. A client proves, every member answers linear functions of its own share,
and the leader decides on the answers' sums. ``claims`` names a statement, ``upload.field_streams`` leads here.
"""
