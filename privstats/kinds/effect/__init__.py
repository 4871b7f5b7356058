"""The kind of a treatment effect: ``schema`` with its checks in ``design`` and ``blocks``, ``influences``, ``sums``."""
