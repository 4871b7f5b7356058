"""The conditions on which a plan's epsilon rests: sentences that are shown beside the number.

None of them can be computed from a plan or observed by an audit of its releases.
"""

from __future__ import annotations

from privstats.schema import Schema

__all__ = ["conditions"]

_CHOSEN = ("clip_norm", "target_bound", "grid_bits", "transform")


def conditions(schema: Schema) -> tuple[str, ...]:
    """The conditions of a plan's promise, for a plan with DP.

    Args:
        schema: the plan's; its fields show which bounds were chosen.

    Guarantee:
        Epsilon bounds what the *released sums* reveal. Anything else that depends on a record (whether a party refuses,
        a bound that was chosen by looking at records) is another release, which no budget here counts. Noise of the
        Gaussian pancake mechanism passes every feasible test for Gaussian noise under lattice assumptions, and reveals
        everything to its maker (Sun, He 2025, arXiv 2509.23834).
    """
    chosen = [name for name in _CHOSEN if hasattr(schema, name)]
    public = "classes, columns and expected" if hasattr(schema, "expected_records") else "classes, columns and"
    return (
        "a refusal tells nothing: whether a party refuses or stays away may depend on its records, and is not counted",
        f"the {public} numbers of records in a plan are public: they come from no private record",
        f"{', '.join(chosen)} and shares were chosen without private records: a choice by looking at them, by a sweep "
        "for example, is a leak outside the budget",
        "the noise source is the library's own: no feasible audit of outputs tells one that was made to deceive from "
        "the declared noise (arXiv 2509.23834)",
    )
