"""The row of what scores records under a published head, which loads the heads on use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from privstats.kinds.scorers import Scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privstats.kinds.scoring import ScoresAndShares, ScoringSchema


def _reader(schema: ScoringSchema, data: bytes) -> Callable[[NDArray[Any]], ScoresAndShares]:
    from privstats.heads.scoring import reader

    return reader(schema, data)


def _package(data: bytes) -> str:
    from privstats.heads.scoring import scored_by

    return scored_by(data)


SCORER = Scorer("scoring", _reader, _package)
