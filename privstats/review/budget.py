"""Build the budget table: each statistic's cost in privacy and in bits, and epsilon by the number of dropouts.

The views for people and for scripts are derived from the plan's noise and headroom. ``conditions`` are sentences
alongside epsilon: its assumptions, which no plan can compute and no audit of its releases can observe.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from scipy.special import ndtr

from privstats.dp import Noise, NoiseRow
from privstats.plan.cohort import Headroom
from privstats.printable import html_facts, html_lines, html_table
from privstats.schema import Schema

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_RESTS = "epsilon counts what the released sums tell, on these conditions:"
_TENTHS = (0, 1, 2, 3)
_CHOSEN = ("clip_norm", "target_bound", "grid_bits", "transform")


@dataclass(frozen=True)
class BudgetRow(NoiseRow):
    """One statistic of the plan: its noise, and its room in the ring.

    Without DP sigma is 0, mu and epsilon are infinite, sensitivity and share are nan.

    Attributes:
        bits: ring bits of its widest segment.
        headroom: how many times the largest possible sum fits below the wrap.
        advantage: without DP, predicted membership advantage of the likelihood-ratio attacker; nan with DP.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> row = plan.budget().rows[0]
        >>> row.statistic, row.sigma, row.bits
        ('N', 0.0, 22)
    """

    bits: int
    headroom: float
    advantage: float


@dataclass(frozen=True)
class Column:
    """One column of the budget table, on the terminal and on the officer's page.

    Attributes:
        heading: its name.
        meaning: its meaning, for readers who are not statisticians.
        shown: formats a row's cell.
    """

    heading: str
    meaning: str
    shown: Callable[[BudgetRow], str]


_ON_THE_WIRE = (
    Column("bits", "length of one number as it is sent", lambda row: str(row.bits)),
    Column(
        "headroom", "how many times the largest sum fits before numbers overflow", lambda row: f"{row.headroom:.2f}x"
    ),
)
_PRIVATE = (
    Column("sensitivity", "the most that one record, client or person moves it", lambda row: f"{row.sensitivity:.4g}"),
    Column(
        "sigma", "guaranteed standard deviation of the noise on each of its numbers", lambda row: f"{row.sigma:.4g}"
    ),
    Column(
        "mu",
        "what can be told of one record, client or person: 0 nothing, 1 much, 4 nearly all",
        lambda row: f"{row.mu:.4f}",
    ),
    Column(
        "epsilon alone",
        "the promise if nothing else were released; what a clip leaves of a client or person may all be in one",
        lambda row: f"{row.epsilon:.4f}",
    ),
    Column(
        "share",
        "its part of the budget, which adds up in mu^2, or in epsilon at delta 0",
        lambda row: f"{row.share:.1%}",
    ),
    *_ON_THE_WIRE,
)
_OPEN = (
    Column(
        "membership advantage",
        "how much better than guessing it tells who is in the data: 0 nothing, 1 all",
        lambda row: f"{row.advantage:.3f}",
    ),
    *_ON_THE_WIRE,
)


def columns(*, private: bool) -> tuple[Column, ...]:
    """Return the columns other than a statistic's letter, with DP or without."""
    return _PRIVATE if private else _OPEN


@dataclass(frozen=True)
class Budget:
    """The budget of a whole plan: one row per statistic and the joint guarantee. Prints as a table.

    Attributes:
        rows: one per statistic.
        mu, epsilon, delta: the guarantee of everything released together; infinite mu and epsilon without DP. delta is
            that of the noise, and ``masking_failure`` on top.
        promise: trust model, unit and adjacency, in words.
        upload_bytes: size of a client's masked vector on the wire.
        masking_failure: bound on the probability that masking shows more than the sum.
        conditions: the conditions on which epsilon rests, in sentences; empty without DP.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> budget = ps.Plan(schema=schema, cohort=cohort, privacy=privacy).budget()
        >>> budget.promise, round(budget.mu, 3), round(budget.epsilon, 3)
        ('central noise, one record, add-remove', 0.268, 1.0)
        >>> [(row.statistic, round(row.sigma, 2), row.bits) for row in budget.rows]
        [('N', 26.38, 22), ('A', 3.77, 22)]
    """

    rows: tuple[BudgetRow, ...]
    mu: float
    epsilon: float
    delta: float
    promise: str
    upload_bytes: int
    masking_failure: float = 0.0
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        schema: Schema,
        noise: Noise | None,
        rooms: Sequence[Headroom],
        *,
        promise: str,
        per_person: bool = False,
        max_records: int,
        upload_bytes: int,
        masking_failure: float = 0.0,
    ) -> Budget:
        """Join the noise of a plan with its ring widths into the table a privacy officer reads."""
        spent = {row.statistic: row for row in noise.rows} if noise else {}
        rows = []
        for statistic in schema.statistics:
            mine = [room for room in rooms if room.segment.statistic == statistic]
            spend = spent.get(statistic, NoiseRow(statistic, math.nan, 0.0, math.inf, math.inf, math.nan))
            advantage = math.nan if noise else predicted_advantage(schema, statistic, max_records)
            rows.append(_row(spend, mine, advantage))
        totals = (noise.mu, noise.epsilon, noise.delta + masking_failure) if noise else (math.inf, math.inf, 1.0)
        return cls(
            tuple(rows),
            *totals,
            promise=promise,
            upload_bytes=upload_bytes,
            masking_failure=masking_failure,
            conditions=conditions(schema, per_person=per_person) if noise else (),
        )

    def __iter__(self) -> Iterator[BudgetRow]:
        return iter(self.rows)

    def __str__(self) -> str:
        from rich.console import Console  # only to view a budget; a client's process need not load it

        console = Console(file=io.StringIO(), width=100, color_system=None)
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich import box
        from rich.table import Table

        shown = columns(private=math.isfinite(self.epsilon))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("", no_wrap=True)
        for column in shown:
            table.add_column(column.heading, justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(row.statistic, *(column.shown(row) for column in shown))
        yield f"[bold]budget:[/] {self.promise}"
        yield table
        yield self._caption()

    def _repr_html_(self) -> str:
        shown = columns(private=math.isfinite(self.epsilon))
        header = ("", *(column.heading for column in shown))
        rows = [(row.statistic, *(column.shown(row) for column in shown)) for row in self.rows]
        promise = html_facts("budget", [("promise", self.promise)])
        return promise + html_table(header, rows) + html_lines(self._caption())

    def _caption(self) -> str:
        private = math.isfinite(self.epsilon)
        legend = [f"{column.heading}: {column.meaning}" for column in columns(private=private)]
        upload = f"each client uploads {self.upload_bytes:,} bytes of masked sums"
        if not private:
            return "\n".join([*legend, upload])
        total = f"all together: mu {self.mu:.4g}, epsilon {self.epsilon:.4g} at delta {self.delta:.3g}"
        if self.masking_failure:
            total += f" ({self.masking_failure:.2g} of it for the masking)"
        rests = [_RESTS, *(f"- {condition}" for condition in self.conditions)]
        return "\n".join([*legend, total, upload, *rests])


def _row(spend: NoiseRow, rooms: Sequence[Headroom], advantage: float) -> BudgetRow:
    """Return a statistic's noise, and the tightest of its segments."""
    bits, headroom = max(room.bits for room in rooms), min(room.factor for room in rooms)
    return BudgetRow(**asdict(spend), bits=bits, headroom=headroom, advantage=advantage)


def predicted_advantage(schema: Schema, statistic: str, max_records: int) -> float:
    """Predict a likelihood-ratio attacker's membership advantage (largest TPR - FPR) from noiseless sums.

    Each of the k independent entries a record touches reveals 1/n about it, so d' = sqrt(k / n) and the advantage is 2
    Phi(d'/2) - 1, with n records in the record's class (all of them for B, G, h, q), spread evenly. It is near 1 until
    n is far above k: a minimum count is meaningless without the dimension.
    """
    row = next(row for row in schema.sent if row.letter == statistic)
    entries, per_class = row.entries(schema.sizes), schema.sizes["class"] if row.cells == "class" else 1
    separation = math.sqrt(entries * per_class / max_records)
    return float(2 * ndtr(separation / 2) - 1)


@dataclass(frozen=True)
class Dropout:
    """A session in which some clients vanish.

    Attributes:
        gone: number of clients that vanish.
        survivors: number of clients that stay.
        honest: number of survivors with noise that an attacker neither knows nor can subtract.
        epsilon: epsilon of the release at the plan's delta, without the colluders' noise; None where too few clients
            stay for a release.

    Example:
        >>> row = ps.plan.Dropout(gone=1, survivors=9, honest=8, epsilon=0.94)  # one of dropout_table(...)
        >>> row.gone + row.survivors
        10
    """

    gone: int
    survivors: int
    honest: int
    epsilon: float | None


def dropout_table(noise: Noise, *, clients: int, min_survivors: int, colluders: int) -> tuple[Dropout, ...]:
    """Rows for no client, 10, 20 and 30 % of the clients (rounded down), the most that may vanish, and one more.

    Counts are whole clients, increasing and distinct; beyond the last nothing is released either.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(10, 8, 1_000), privacy=privacy)
        >>> rows = ps.plan.dropout_table(plan.noise, clients=10, min_survivors=8, colluders=0)
        >>> [(row.survivors, row.epsilon and round(row.epsilon, 2)) for row in rows]
        [(10, 0.88), (9, 0.94), (8, 1.0), (7, None)]
    """
    spare = clients - min_survivors
    counts = {tenth * clients // 10 for tenth in _TENTHS} | {spare}
    rows = []
    for gone in (*sorted(count for count in counts if count <= spare), spare + 1):
        survivors = clients - gone
        honest = survivors - colluders
        rows.append(Dropout(gone, survivors, honest, noise.released_epsilon(honest) if gone <= spare else None))
    return tuple(rows)


def conditions(schema: Schema, *, per_person: bool = False) -> tuple[str, ...]:
    """Return the conditions of a plan's promise, for a plan with DP.

    Args:
        schema: the plan's; its fields show which bounds were chosen.
        per_person: whether the promise is for a person with several rows.

    Guarantee:
        Epsilon bounds what the *released sums* reveal. Anything else that depends on a record (whether a party refuses,
        a bound that was chosen by looking at records) is another release, which no budget here counts. Noise of the
        Gaussian pancake mechanism passes every feasible test for Gaussian noise under lattice assumptions, and reveals
        everything to its maker (Sun, He 2025, arXiv 2509.23834).
    """
    chosen = [name for name in _CHOSEN if hasattr(schema, name)]
    public = "classes, columns and expected" if hasattr(schema, "expected_records") else "classes, columns and"
    ids = "each party knows its patients by right ids: one who is at two parties, or under two ids, has mu twice"
    return (
        *((ids,) if per_person else ()),
        "a refusal tells nothing: whether a party refuses or stays away may depend on its records, and is not counted",
        f"the {public} numbers of records in a plan are public: they come from no private record",
        f"{', '.join(chosen)} and shares were chosen without private records: a choice by looking at them, by a sweep "
        "for example, is a leak outside the budget",
        "the noise source is the library's own: no feasible audit of outputs tells one that was made to deceive from "
        "the declared noise (arXiv 2509.23834)",
    )
