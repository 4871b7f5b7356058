"""The failure bounds of a random graph in sentences, for the person who reviews a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privstats.secagg.interactive.parameters import FailureBounds

__all__ = ["failures"]


def failures(bounds: FailureBounds, server_may_lie: bool) -> list[str]:
    """One sentence, or none where nothing can fail; and what holds only against an honest server."""
    named = {
        "honest clients split into groups": bounds.connectivity,
        "a client's secrets come together": bounds.privacy,
        "a secret finds too few shares": bounds.liveness,
        "a server that chooses who drops splits the honest": bounds.lying_server,
    }
    if all(math.isinf(value) for value in named.values()):
        return []
    parts = (f"{name}: {_power(value)}" for name, value in named.items())
    out = ["over the random graph, at most these probabilities of failure: " + "; ".join(parts)]
    if not server_may_lie:
        out.append(
            'graph = "sparse" keeps the promise against a server that follows the protocol only; one that chooses who '
            'drops out may learn more than the sum, and graph = "robust" bounds that'
        )
    return out


def _power(log2: float) -> str:
    if math.isinf(log2):
        return "never"
    return f"2^{log2:.0f}" if log2 < 0 else "no bound"
