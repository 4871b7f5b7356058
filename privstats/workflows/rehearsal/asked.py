"""What was asked of a rehearsal, and the words that it takes for what was not said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privstats.dp import Privacy

__all__ = ["MOST_EXACT", "MOST_ROWS", "Asked", "words_of"]

MOST_EXACT = 1 << 16
"""Records that a model without noise is made of, at most: every second, every third of more. It holds them in memory,
and the area would move by less than its error."""
MOST_ROWS = 1
"""Rows that all rows of a person at one party weigh at most: of the clips, a head is best with the smallest."""
_PAIR = 2


@dataclass(frozen=True)
class Asked:
    """What was asked for, and in which words where it was not said.

    Attributes:
        target: the column that is predicted.
        epsilon: of the promise.
        delta: of the promise; None: a word of the rehearsal, as for the others.
        adjacency, model: of the promise.
        test: about the share of the records that is held out.
        drop: columns that are left out.
        persons: the column that tells whose a record is, which makes the promise one per person; None: per record.
    """

    target: str
    epsilon: float
    delta: float | None = None
    adjacency: str | None = None
    model: str | None = None
    test: float = 0.25
    drop: tuple[str, ...] = ()
    persons: str | None = None

    def privacy(self, parties: int) -> Privacy:
        """The promise that is rehearsed."""
        said: Any = {name: getattr(self, name) for name in ("delta", "adjacency", "model")}
        words = {name: word for name, (word, _) in words_of(parties).items()}
        chosen = {name: words[name] if value is None else value for name, value in said.items()}
        if self.persons is not None:
            chosen |= {"max_records_per_person": MOST_ROWS, "person_clip": float(MOST_ROWS)}
        return Privacy(unit="record" if self.persons is None else "person", epsilon=self.epsilon, **chosen)


def words_of(parties: int, *, persons: bool = False) -> Mapping[str, tuple[Any, str]]:
    """The words that a rehearsal takes for what was not said, each with what a study thinks of before it takes one."""
    one, protected = "record", "one record is protected; of a patient with several less is promised"
    if persons:
        one = "person"
        protected = "all rows of one patient at one party together weigh at most one row; in two files one has two"
    model = ("local", "each party adds all of it, for between two either knows its own part of the sum")
    if parties > _PAIR:
        model = ("distributed", "the parties add it together, and one of them may work with the server")
    return {
        "unit": (one, protected),
        "adjacency": ("add-remove", f"that a {one} is there at all is hidden, too"),
        "delta": (1e-6, f"the chance of more, well below 1 / {one}s"),
        "model": model,
    }
