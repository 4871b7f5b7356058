"""The result of attacks: rows of measured, baseline, ceiling and verdict, as JSON or Markdown.

Values only: ``pictures`` and ``page`` render a report. Attacks and audits report through the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from privstats.dp import Guarantee
from privstats.files.text import json_text, json_value
from threat_models.bounds import Interval, Point, Roc

Verdict: TypeAlias = Literal["violates ceiling", "leaks", "no evidence", "underpowered", "does not apply"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_SPARE = 1.25
_TELLING = 0.2
"""An interval wider than this that holds the baseline says nothing: the verdict is then "underpowered"."""


@dataclass(frozen=True)
class Example:
    """A few vectors of one world, for a picture: each a tuple of vectors.

    Attributes:
        truth: records that were in the sums.
        raw: the class's sum over its count, taken for a record: inversion without an attack.
        attack: the attack's nearest guess for each.
        mean: the class mean of the public sample.
        prior: the public record nearest to that mean: a guess without the release.
    """

    truth: tuple[tuple[float, ...], ...]
    raw: tuple[tuple[float, ...], ...]
    attack: tuple[tuple[float, ...], ...]
    mean: tuple[tuple[float, ...], ...]
    prior: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One attack by one adversary.

    Attributes:
        attack, number, goal: which attack.
        adversary: its declaration in words; ``sees`` its first field.
        metric: what ``measured``, ``interval``, ``baseline`` and ``ceiling`` are numbers of; higher is worse.
        measured, interval: point estimate and confidence interval; None where nothing was measured.
        baseline: the same attacker without the release.
        ceiling: what the plan's guarantee allows against any attacker; None where it promises nothing.
        verdict: see :func:`judge`; "does not apply" to this plan is no evidence, and no trials change it.
        note: one sentence, where there is something to say.
        mu, pure: the guarantee that the ceilings come from; None without one, and pure where delta is above 0.
        worlds: independent trials behind the numbers.
        setting: what a sweep varied, and its value.
        points: membership: TPR at 1 % and at .1 % false positives, where the trials suffice.
        roc: membership: the curve.
        example: reconstruction: vectors for a picture.
    """

    attack: str
    number: int
    goal: str
    adversary: str
    sees: str
    metric: str
    measured: float | None = None
    interval: Interval | None = None
    baseline: float | None = None
    ceiling: float | None = None
    verdict: Verdict = "underpowered"
    note: str = ""
    mu: float | None = None
    pure: float | None = None
    worlds: int = 0
    setting: Mapping[str, float] = field(default_factory=dict)
    points: tuple[Point, ...] = ()
    roc: Roc | None = None
    example: Example | None = None

    @property
    def without(self) -> str:
        """The baseline for people: too few trials for the attack are too few for it, and tell no number of it."""
        silent = self.interval is not None and self.verdict == "underpowered"
        return "not known" if silent else number(self.baseline)

    @property
    def outcome(self) -> str:
        """The verdict for people: what leaks does so within the promise, or where nothing is promised."""
        if self.verdict != "leaks":
            return self.verdict
        return "leaks, no promise" if self.ceiling is None else "leaks, within the promise"

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee that the ceilings follow from."""
        return None if self.mu is None else Guarantee(self.mu, math.inf if self.pure is None else self.pure)

    def plain(self) -> dict[str, Any]:
        """The row as JSON holds it, with the ceiling beside every operating point; examples are left out."""
        out, guarantee = asdict(self), self.guarantee
        del out["example"]
        for point in out["points"]:
            point["ceiling"] = None if guarantee is None else guarantee.tpr(point["wanted"])
        plain: dict[str, Any] = json_value(out)
        return plain


def _most(rows: Iterable[Row]) -> Row | None:
    """Return the measured row with the largest gain over its baseline."""
    measured = [row for row in rows if row.interval is not None]
    return max(measured, key=lambda row: row.interval[0] - (row.baseline or 0.0), default=None)  # type: ignore[index]


@dataclass(frozen=True)
class LeakageReport:
    """Every row of a run, and what was declared.

    Attributes:
        title: what was attacked.
        declared: the plan's promise in one sentence.
        rows: see :class:`Row`.
        confidence: of all intervals together: each row's is widened for the number of rows.
        plan: the digest of the plan under attack.
        features: its dimension d, for the marks at d and d^2 / 2 records.
        seed: what reproduces the run; None for system randomness.
        trials: that were asked for.
    """

    title: str
    declared: str
    rows: tuple[Row, ...]
    confidence: float = 0.95
    plan: str = ""
    features: int = 0
    seed: int | None = None
    trials: int = 0

    @property
    def violated(self) -> bool:
        """Whether a row contradicts the plan's guarantee."""
        return any(row.verdict == "violates ceiling" for row in self.rows)

    @property
    def measured(self) -> frozenset[str]:
        """Attacks with a row that was measured; the others do not apply."""
        return frozenset(row.attack for row in self.rows if row.interval is not None)

    @property
    def undecided(self) -> frozenset[str]:
        """Attacks with an inconclusive row: an interval too wide for a verdict."""
        rows = (row for row in self.rows if row.interval is not None and row.verdict == "underpowered")
        return frozenset(row.attack for row in rows)

    @property
    def silent(self) -> str:
        """A sentence where no attack applies to the plan, so that nothing was tried; else empty."""
        if not self.rows or any(row.verdict != "does not apply" for row in self.rows):
            return ""
        return (
            "None of these attacks applies to this plan, so nothing was tried; `privstats audit budget` searches the "
            "unit that shows most, and its rows bound every attacker."
        )

    @property
    def needed(self) -> int:
        """About how many trials would let every attack say something; 0 where each does.

        Widths of intervals fall with the square root of the trials; a quarter more, and at least twice as many, because
        they do so roughly. Two digits, rounded up.
        """
        rows = [row for row in self.rows if row.interval is not None and row.verdict == "underpowered"]
        widths = [row.interval[1] - row.interval[0] for row in rows if row.interval is not None]
        if not widths:
            return 0
        finite = [width for width in widths if math.isfinite(width)]
        factor = max([2.0, *(_SPARE * (width / _TELLING) ** 2 for width in finite)])
        wanted = factor * self.trials
        unit = int(10 ** max(0, math.ceil(math.log10(max(wanted, 1))) - 2))
        return math.ceil(wanted / unit) * unit

    @property
    def leaking(self) -> str:
        """What "leaks" means where no ceiling is violated; empty without such a row."""
        leaking = [row for row in self.rows if row.verdict == "leaks" and row.goal != "audit"]
        if self.violated or not leaking:
            return ""
        bounded = any(row.ceiling is not None for row in leaking)
        free = any(row.ceiling is None for row in leaking)
        return " ".join(
            [
                "leaks: this attack learns more from the release than without it, as every useful release allows.",
                *(["The promise bounds how much: the ceiling, which no attacker passes."] if bounded else []),
                *(["Rows without a ceiling are about facts that the plan does not protect."] if free else []),
            ]
        )

    @property
    def worst(self) -> Row | None:
        """The row that gains most over its baseline; its interval holds for the best of all, at ``confidence``."""
        return _most(row for row in self.rows if row.goal != "audit")

    @property
    def worst_by_goal(self) -> dict[str, Row]:
        """The worst row by goal, among rows that the promise bounds; goals without a measured row are excluded."""
        bounded = [row for row in self.rows if row.ceiling is not None]
        best = {goal: _most(row for row in bounded if row.goal == goal) for goal in {row.goal for row in bounded}}
        return {goal: row for goal, row in best.items() if row is not None}

    @property
    def doubt(self) -> str:
        """A sentence on inconclusive attacks, and the trials that would decide them; empty where each is conclusive."""
        silent, measured = len(self.undecided), len(self.measured)
        if not silent:
            return ""
        verb = "says" if silent == 1 else "say"
        return (
            f"Too few trials to tell: {silent} of {measured} attack{'s' if measured != 1 else ''} {verb} nothing with "
            f"--trials {self.trials}; about {self.needed:,} would."
        )

    def to_json(self) -> str:
        """One JSON object; null stands for what there is not, and for numbers that JSON cannot hold."""
        document = {
            "title": self.title,
            "declared": self.declared,
            "plan": self.plan,
            "seed": self.seed,
            "confidence": self.confidence,
            "violated": self.violated,
            "trials": self.trials,
            "undecided": sorted(self.undecided),
            "trials_needed": self.needed,
            "rows": [row.plain() for row in self.rows],
        }
        return json_text(document)

    def to_markdown(self) -> str:
        """A table for a page or an issue, with its notes."""
        head = ("#", "attack", "sees", "metric", "measured", "interval", "baseline", "ceiling", "verdict")
        lines = [f"**{self.title}.** {self.declared}", "", _line(head), _line(["---"] * len(head))]
        lines += [_line(_cells(row)) for row in self.rows]
        notes = [f"- {row.attack}: {row.note}" for row in self.rows if row.note]
        doubt = [line for each in (self.leaking, self.doubt) if each for line in ("", each)]
        return "\n".join([*lines, *doubt, *([""] if notes else []), *notes]) + "\n"


def judge(
    interval: Interval,
    baseline: Interval,
    ceiling: float | None,
    points: tuple[Point, ...] = (),
    guarantee: Guarantee | None = None,
) -> Verdict:
    """The verdict of an interval.

    "violates ceiling": its lower end lies above the ceiling, or so does the TPR of an operating point at the upper end
    of its FPR. "leaks": it lies above the whole interval of the baseline. "no evidence": it reaches down to the middle
    of the baseline's and is narrow enough to say so. Otherwise "underpowered".
    """
    above = ceiling is not None and interval[0] > ceiling
    beyond = guarantee is not None and any(p.tpr_interval[0] > guarantee.tpr(p.fpr_interval[1]) for p in points)
    if above or beyond:
        return "violates ceiling"
    if interval[0] > baseline[1]:
        return "leaks"
    holds = interval[0] <= (baseline[0] + baseline[1]) / 2
    return "no evidence" if holds and interval[1] - interval[0] <= _TELLING else "underpowered"


class Stated(TypedDict):
    """The fields of a row that hold a guarantee."""

    mu: float | None
    pure: float | None


def stated(kept: Guarantee | None) -> Stated:
    """A guarantee as the fields of a row, which files hold too."""
    if kept is None:
        return {"mu": None, "pure": None}
    return {"mu": kept.mu, "pure": None if math.isinf(kept.pure) else kept.pure}


def _cells(row: Row) -> tuple[str, ...]:
    interval = "-" if row.interval is None else f"{row.interval[0]:.3f} to {row.interval[1]:.3f}"
    setting = "".join(f", {name} {value:g}" for name, value in row.setting.items())
    return (
        str(row.number),
        row.attack + setting,
        row.sees,
        row.metric,
        number(row.measured),
        interval,
        row.without,
        "none" if row.ceiling is None else number(row.ceiling),
        row.outcome,
    )


def number(value: float | None) -> str:
    """A rate with three digits, a dash for none."""
    return "-" if value is None else f"{value:.3f}"


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"
