"""The rows of the levels of ``[validity]`` that this room proves, which load the proofs on use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from privstats.extend.plans import Prover

if TYPE_CHECKING:
    from privstats.extend.plans import Claim

_UNPROVED = "docs/proofs/reports.md lists what is unproved"


def _claim_of(proved: tuple[str, ...], *parts: Any) -> Claim:
    from privstats.contrib.proofs.of_plans import claim_of

    return claim_of(proved, *parts)


_OF_MOMENTS, _OF_NORM = ("classes", "folds", "tables"), ("norms",)
MOMENTS = Prover(
    "moments",
    "its sums are of at most {max_records} fractional records within the schema's bounds, class by class",
    _OF_MOMENTS,
    partial(_claim_of, _OF_MOMENTS),
    experimental=_UNPROVED,
)
NORM = Prover(
    "norm",
    "each of its statistics has the norm of at most {max_records} records, which protects a gradient and does not "
    "protect class moments",
    _OF_NORM,
    partial(_claim_of, _OF_NORM),
    experimental=_UNPROVED,
)
