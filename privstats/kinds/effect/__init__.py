"""The kind of a treatment effect: ``schema`` with its ``checks``, ``declared`` columns, ``influences``, ``sums``."""
