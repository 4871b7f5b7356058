"""Heads of classes that few studies take: low-rank covariances, and two that are trained on synthetic records.

The registry of ``privstats.heads`` finds them as it finds those of other packages, so each is a name of
``privstats.heads``, of every ``--head`` and of head files. ``synthetic`` has the samples and the training.
"""
