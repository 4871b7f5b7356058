"""Rows of a report in plain sentences, for privacy officers without statistics.

Words only; ``page`` lays them out.
"""

from __future__ import annotations

from threat_models.report import Row

__all__ = ["asked", "count", "who"]

_METRICS = {
    "AUC": "tells a member from a stranger",
    "rebuilt": "share of records rebuilt within 5 %",
    "pairs": "share of values rebuilt as unordered pairs",
    "guessed": "share of guesses that are right",
    "site means rebuilt": "share of sites whose means come out within 5 %",
    "unseen": "share of lies that no check sees",
    "false sums taken": "share of false sums that enter the total",
    "accuracy lost": "accuracy that the worst sums cost which its proof admits",
    "G rebuilt": "how often the second moment comes out within 5 %",
    "B rebuilt": "how often the second moment comes out within 5 %",
}


def asked(row: Row) -> str:
    """A row's metric, in words."""
    if row.goal == "unmasking":
        return f"how often this lie shows one client's sums: {row.metric}"
    if row.goal == "audit":
        return f"strength of the signal that is proved, in {row.metric}"
    if row.metric.startswith("SSIM"):
        way = row.metric.partition(", ")[2]
        return "share of pictures recognised" + (f", secure aggregation {way}" if way else "")
    return _METRICS.get(row.metric, row.metric)


def who(row: Row) -> str:
    """The attacker, as what follows "somebody who"."""
    return row.adversary.replace("; ", ", ")


def count(number: int, noun: str) -> str:
    """A number of things, one in a word."""
    return f"One {noun}" if number == 1 else f"{number} {noun}s"
