"""The rows of the levels of ``[validity]`` that this room proves, which load the proofs on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privstats.extend.plans import Prover

if TYPE_CHECKING:
    from privstats.extend.plans import Claim

_UNPROVED = "docs/proofs.md lists what is unproved"


def _claim_of(*parts: Any) -> Claim:
    from privstats.contrib.proofs.of_plans import claim_of

    return claim_of(*parts)


MOMENTS = Prover(
    "moments",
    "its sums are of at most {max_records} fractional records within the schema's bounds, class by class",
    ("classes", "folds", "tables"),
    _claim_of,
    experimental=_UNPROVED,
)
NORM = Prover(
    "norm",
    "each of its statistics has the norm of at most {max_records} records, which protects a gradient and does not "
    "protect class moments",
    ("norms",),
    _claim_of,
    experimental=_UNPROVED,
)
