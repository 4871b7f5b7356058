"""Heads of classes that few studies need: low-rank covariances, parties, and two trained on synthetic records.

Each is also a name of ``privstats.heads``, of ``--head`` and of head files.
"""
