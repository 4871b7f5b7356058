"""What class squares D are worth to the heads that are trained on synthetic records (GH-OFL 3.1 and the note in 3.3).

The paper uploads (A, B, N, D) for FisherMix and Proto-Hyper, and its code draws from B alone. Here every upload is read
whole: B gives pooled correlations, D a class's own variances, D alone no correlations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.measuring import Rows
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.gh import published
from benchmarks.papers.gh.accuracy import SEEDS
from benchmarks.papers.sets import at_hand, released
from privstats import heads

__all__ = ["worth"]

_WHY = "a class's variances in the features say less than the pooled correlations, and D alone has none"
_SEEDS = SEEDS[:3]
_SETS = ("digits", "banking77", "cifar10")
_ROWS: Mapping[str, tuple[Callable[[int], Any], Sequence[str]]] = {
    "FisherMix": (lambda seed: heads.FisherMix(random_state=seed), ("NAB", "NABD", "NAD")),
    "Proto-Hyper": (lambda seed: heads.ProtoHyper(random_state=seed), ("NAB", "NABD", "NAD")),
    "Proto-Hyper, LDA teacher": (lambda seed: heads.ProtoHyper(random_state=seed, teacher="lda"), ("NAD",)),
}
"""How a head is made, and the uploads that it is fitted on; the paper's note gives D alone an LDA teacher."""


def worth(*, quick: bool) -> tuple[str, Rows]:
    """A column per set; with D a head loses where the same head without it is better."""
    about = "trained heads by what was uploaded: accuracy, %"
    sheet = Sheet(published.PAPER, "Section 3.3, note", about, better="higher")
    cells: list[Cell] = []
    for features in (each for name, each in at_hand(quick=quick).items() if name in _SETS):
        for name, (make, uploads) in list(_ROWS.items())[: 1 if quick else None]:
            without: list[float] | None = None
            for letters in uploads[-1:] if quick else uploads:
                release = released(features, letters)
                fitted = [make(seed).fit_release(release) for seed in _SEEDS[: 1 if quick else None]]
                found = [100 * head.score(features.split[1], features.split[3]) for head in fitted]
                row = f"{name}, ({', '.join(letters)})"
                print(f"  {row}, {features.name}: {found}", flush=True)
                cells.append(sheet.cell(row, features.name, None, found, rival=without, why=_WHY))
                without = without or found
    return sheet.rows(cells)
