"""A cell of a paper's table: what was printed, what came out here, and whether they agree within the spread.

Not a benchmark: the papers' modules make cells, ``benchmarks.measuring`` prints and saves their rows, and
``benchmarks.paper_tables`` puts them into the page. No verdict is written by hand where a number can give it.

A cell of a paper's table gives its own verdict. What was printed is read as text, with its rounding and its spread;
what came out has a mean per seed; whether the two agree is a rule in one place (``benchmarks/papers/cells.py``), and
a loss is bold even where the paper is wrong. A cell whose data cannot be had has no verdict that compares: there is
no rule under which numbers of two backbones say something. How far one row lies above another can be compared, and
is, as a cell like any other (``benchmarks/papers/gaps.py``), paired over the seeds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from benchmarks.measuring import Row, Rows

__all__ = ["WITHIN", "Cell", "Ours", "Published", "Sheet"]

Better = Literal["lower", "higher"]

WITHIN = "within the spread"
_UNEXPLAINED = "the paper does not say enough to tell"
_ADDED = "not in the paper"
_PRINTED = re.compile(r"<?([+-]?\d+(?:\.(\d+))?)(?:\s*±\s*(\d+(?:\.\d+)?))?")
_ERRORS = 2.0  # standard errors up to which two means count as the same


@dataclass(frozen=True)
class Published:
    """A number as it is printed.

    Attributes:
        text: as printed, ``"0.0103"`` or ``"93.5 ± 0.4"``; ``"<1"`` counts as 1.
        value: the number.
        rounding: half a unit of its last digit.
        spread: what stands behind ±, or None.
    """

    text: str
    value: float
    rounding: float
    spread: float | None

    @classmethod
    def of(cls, text: str) -> Published:
        """Read a printed number; raises ``ValueError`` where it is none."""
        found = _PRINTED.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no printed number, such as 0.0103 or 93.5 ± 0.4")
        number, decimals, spread = found.groups()
        half = 0.5 * 10.0 ** -len(decimals or "")
        return cls(text, float(number), half, None if spread is None else float(spread))


@dataclass(frozen=True)
class Ours:
    """What came out here.

    Attributes:
        mean: over the seeds.
        deviation: standard deviation of one seed's value; 0 for a value that no seed changes.
        seeds: how many.
    """

    mean: float
    deviation: float
    seeds: int

    @classmethod
    def of(cls, values: float | Iterable[float]) -> Ours:
        """One value, or a value per seed."""
        each = np.atleast_1d(np.asarray(values if isinstance(values, float | int) else list(values), np.float64))
        return cls(float(each.mean()), float(each.std(ddof=1)) if len(each) > 1 else 0.0, len(each))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / math.sqrt(self.seeds)


@dataclass(frozen=True)
class Cell:
    """One cell of one table of one paper.

    Attributes:
        paper: its short name.
        table: as the paper numbers it.
        row: as the paper names it.
        column: as the paper names it, with the unit.
        published: as printed; None for a cell that the paper leaves out and that is ours to add.
        ours: None where nothing here comes near it.
        verdict: "within the spread", "differs: why", "cannot be had here: nearest is ...", with "; loses: why" behind
            it where it does, or, for a cell that the paper has not, "not in the paper" or "loses: why".
        lost: ours is worse, by more than the spread, than what was published or than the best other system here.
    """

    paper: str
    table: str
    row: str
    column: str
    published: Published | None
    ours: Ours | None
    verdict: str
    lost: bool

    def as_row(self) -> Row:
        """For ``benchmarks.measuring``: numbers and strings only."""
        ours = self.ours
        return {
            "row": self.row,
            "column": self.column,
            "published": None if self.published is None else self.published.text,
            "ours": None if ours is None else ours.mean,
            "se": None if ours is None else ours.error,
            "seeds": None if ours is None else ours.seeds,
            "verdict": self.verdict,
            "lost": self.lost,
        }


@dataclass(frozen=True)
class Sheet:
    """One table of a paper: makes its cells, and knows which way is better.

    Args:
        paper: short name.
        table: as the paper numbers it, ``"Table II"``.
        about: what it shows, with the unit.
        better: which way is better, or None where neither is.
        trials: of which a published number is the mean, as the paper says.
    """

    paper: str
    table: str
    about: str
    _: KW_ONLY
    better: Better | None = None
    trials: int = 1

    @property
    def title(self) -> str:
        """Of the printed table and its key in the JSON."""
        return f"{self.paper}, {self.table}: {self.about}"

    def cell(
        self,
        row: str,
        column: str,
        published: str | None,
        values: float | Iterable[float],
        *,
        why: str = _UNEXPLAINED,
        peer: bool = False,
        rival: float | Iterable[float] | None = None,
    ) -> Cell:
        """A cell that can be run here.

        It is within the spread where the difference is at most the rounding and twice the standard error of the
        difference. The published error is the printed spread over the root of the trials; where none is printed, one
        trial is taken to spread as one seed does here.

        Args:
            row, column: as printed.
            published: as printed, or None where the paper has no such cell.
            values: ours, one per seed.
            why: the reason, in case it differs or loses.
            peer: the cell is another system, run again here, so that it cannot be a loss of ours.
            rival: for a cell that the paper has not: the best other system of the same run, one value per seed; worse
                than it by more than twice the standard error counts as lost.
        """
        ours = Ours.of(values)
        if published is None:
            lost = rival is not None and self._worse(ours.mean, Ours.of(rival).mean, self._together(ours, rival))
            return self._made(row, column, None, ours, f"loses: {why}" if lost else _ADDED, lost)
        printed = Published.of(published)
        spread = ours.deviation if printed.spread is None else printed.spread
        allowed = printed.rounding + _ERRORS * math.hypot(ours.error, spread / math.sqrt(self.trials))
        allowed *= 1 + 1e-9  # a difference of just half a digit is one of rounding
        if abs(ours.mean - printed.value) <= allowed:
            return self._made(row, column, printed, ours, WITHIN, lost=False)
        lost = not peer and self._worse(ours.mean, printed.value, allowed)
        return self._made(row, column, printed, ours, f"differs: {why}", lost)

    def nearest(
        self,
        row: str,
        column: str,
        published: str,
        values: float | Iterable[float],
        instead: str,
        *,
        rival: float | Iterable[float] | None = None,
        why: str = _UNEXPLAINED,
    ) -> Cell:
        """A cell whose data set or backbone cannot be had here, beside the nearest that can.

        The two numbers are not compared: absolute numbers of two backbones say nothing about a method. ``rival``, the
        best other system of the same run, is: worse than it by more than twice the standard error counts as lost, and
        ``why`` is the reason.
        """
        ours, verdict = Ours.of(values), f"cannot be had here: nearest is {instead}"
        lost = rival is not None and self._worse(ours.mean, Ours.of(rival).mean, self._together(ours, rival))
        verdict += f"; loses: {why}" if lost else ""
        return self._made(row, column, Published.of(published), ours, verdict, lost)

    def absent(self, row: str, column: str, published: str, why: str) -> Cell:
        """A cell that nothing here comes near; ``why`` says what is missing, or which work is still open."""
        return self._made(row, column, Published.of(published), None, f"cannot be had here: {why}", lost=False)

    def rows(self, cells: Sequence[Cell]) -> tuple[str, Rows]:
        """What a benchmark yields: the title and a row per cell."""
        return self.title, [cell.as_row() for cell in cells]

    def _made(
        self, row: str, column: str, published: Published | None, ours: Ours | None, verdict: str, lost: bool
    ) -> Cell:
        return Cell(self.paper, self.table, row, column, published, ours, verdict, lost)

    def _worse(self, ours: float, theirs: float, allowed: float) -> bool:
        if self.better is None:
            return False
        return (ours - theirs if self.better == "lower" else theirs - ours) > allowed

    @staticmethod
    def _together(one: Ours, other: float | Iterable[float]) -> float:
        return _ERRORS * math.hypot(one.error, Ours.of(other).error)
