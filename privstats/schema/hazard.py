"""The schema of one round of grouped-time proportional hazards: score and information of persons over all periods.

Bounds and shapes only; the map from persons to integers is in ``moments.hazard``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from privstats.errors import SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import GIVEN, checked_vectors, settle, size, whole
from privstats.schema.counts import Bins, Categories, CountSchema, Variable, plain_variable, variable_of
from privstats.schema.public_values import Values
from privstats.schema.score import NEEDS_PRIVACY, require_narrow
from privstats.schema.statistic import Statistic, letters_of
from privstats.transforms import ConstantFeature, Transform, steps_of

__all__ = ["CAP", "HazardSchema"]

_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "g",
        "pooled",
        ("feature",),
        (1, 1),
        meaning="the sum over persons of what each would change in the model, all its periods together",
        share=0.7,
    ),
    Statistic(
        "H",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum over persons and periods of products of every two columns, weighted by the variance of each "
        "predicted event",
        symmetric=True,
        share=0.3,
    ),
)
"""Score and information of grouped-time proportional hazards, in wire order."""

CAP = 1.0
"""M, the cumulative hazard up to which a person is followed."""

_MOST_BINS = 256
_MOST_FEATURES = 1 << 12  # products of 12 x 20 bits and their sums are exact in float64
_EVENTS_PER_BIN = 10


@dataclass(frozen=True)
class HazardSchema(Schema):
    """Score and information of proportional hazards in bins of time, at published weights w.

    P(event in bin j | at risk) = 1 - exp(-mu_j) with mu_j = exp(w'u_j), where u_j is a person's row with the constant
    in the column of bin j. A person at risk in a bin adds r u_j and v u_j u_j': r = -mu_j, at the event
    mu_j / (exp(mu_j) - 1); v = mu_j^2 / (exp(mu_j) - 1). ``exp`` of a column's weight is the hazard ratio of the
    continuous model, whatever the bins. A course builds the rounds (:class:`~privstats.course.Hazard`).

    A person leaves before the first bin where the published cumulative hazard would pass 1: a censoring that follows
    from columns and weights and not from the event, so that the score stays unbiased for every w.

    Args:
        features: dimension of the rows behind ``transform``, the constant included.
        clip_norm: R, the norm that rows with their constant are clipped to.
        bins: times in bins from 0 on. Who is observed beyond the last edge is censored there, so let it be the end of
            the follow-up that people reach. Six bins suit noise; eight to twelve come nearest to Cox's model.
        event: the column that holds 1 where the time is that of the event, and 0 where it is censored; or the two
            texts that a first map :class:`~privstats.transforms.Levels` declares for it.
        feature_names: of the columns, which are read by name beside ``bins.name`` and ``event``.
        transform: public maps, the last of which is :class:`~privstats.transforms.ConstantFeature`: its value stands in
            the column of each bin, and is at most R / sqrt 2.
        cap: M, the cumulative hazard up to which a person counts; 1.
        expected_events: a public guess; more than one bin for ten of them is refused.
        grid_bits, nonnegative: as in :class:`ClassSchema`.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Guarantee:
        The unit is the person over all periods, one row. |sum_j r_j u_j| <= M R and |sum_j v_j u_j u_j'| <= M R^2 for
        every w, and both are attained in the limit (docs/sensitivity.md). Source: Prentice and Gloeckler 1978.

    Example:
        >>> schema = ps.HazardSchema(
        ...     2,
        ...     clip_norm=2.0,
        ...     bins=ps.Bins("months", (0, 6, 12, 24)),
        ...     event="died",
        ...     feature_names=("arm",),
        ...     transform=(ps.transforms.ConstantFeature(1.0),),
        ... )
        >>> schema.sizes, schema.needs  # one weight for the column, and one for each bin
        ({'feature': 4}, {'w': (4,)})
    """

    task: ClassVar[str] = "hazard"
    makes: ClassVar[str] = (
        "a step of a survival analysis: which columns raise or lower the rate at which an event happens"
    )
    no_persons: ClassVar[str] = "a record of a HazardSchema is a person already, over all periods: one row each"
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)

    features: int = GIVEN
    clip_norm: float = GIVEN
    _: KW_ONLY
    bins: Bins
    event: str
    feature_names: tuple[str, ...]
    transform: tuple[Transform, ...]
    cap: float = CAP
    expected_events: int | None = None
    grid_bits: int = 12
    nonnegative: bool = False

    def __post_init__(self) -> None:
        settle(self, bins=_checked_bins(self.bins), transform=steps_of(self.transform))
        _check_maps(self)
        settle(self, **checked_vectors(self))
        _check_cap(self.cap)
        settle(self, cap=CAP)
        _check_columns(self)
        _check_constant(self)
        _check_events(self)
        _ = self.clock  # refuses names that are no names

    @property
    def periods(self) -> int:
        """Number of bins."""
        return len(self.bins.edges) - 1

    @property
    def constant(self) -> float:
        """What stands in the column of each bin."""
        last = self.transform[-1]
        assert isinstance(last, ConstantFeature)  # noqa: S101  the constructor has refused others
        return last.value

    @property
    def clock(self) -> CountSchema:
        """Times and events as they are read and counted, with one more bin for times beyond the last edge."""
        return self.counted()

    def counted(self, by: str | None = None) -> CountSchema:
        """Counts of bin and event, and of a column of 0 and 1.

        Args:
            by: one of ``feature_names``.

        Raises:
            SchemaError: it is none of them.
        """
        if by is not None and by not in self.feature_names:
            raise SchemaError(f"by must be one of the columns {', '.join(self.feature_names)}, got {by!r}")
        *_, (last, end) = pairwise(self.bins.edges)
        wider = replace(self.bins, edges=(*self.bins.edges, 2 * end - last), open="above")
        crossed: tuple[Variable, ...] = (wider, *(self._two(name) for name in (self.event, by) if name is not None))
        return CountSchema(crossed, (tuple(each.name for each in crossed),))

    def _two(self, name: str) -> Categories:
        """A column of 0 and 1, or of its two declared texts."""
        levels: Any = self.transform[0]
        told = {each.name: each for each in (*levels.columns, *levels.outcomes)} if levels.kind == "levels" else {}
        found = told.get(name)
        return found if isinstance(found, Categories) else Categories(name, (0, 1))

    @property
    def sizes(self) -> dict[str, int]:
        """Length of the one axis: the columns, then the bins."""
        return {"feature": self.features - 1 + self.periods}

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return f"{self.columns}, the time {self.bins.name} and whether {self.event} happened then, of one person"

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: rows have 2**f per R, residuals and v 2**f per M."""
        row = next(row for row in self.sent if row.letter == statistic)
        return row.scale(self.scale) / self.cap if statistic == "H" else row.scale(self.scale, self.steps / self.cap)

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The weights w, those of the columns and then those of the bins."""
        return {"w": (self.sizes["feature"],)}

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse weights of another shape, wider than 20 bits, tiny or enormous, before any record is read."""
        super().check_values(values)
        require_narrow(values["w"])

    def plain_fields(self) -> dict[str, Any]:
        """The fields as a plan file holds them."""
        return {"bins": plain_variable(self.bins)}

    def refusal(self, unit: str | None) -> str:
        """Why no plan may go without DP: a chosen w isolates a person, whatever else is in the sum."""
        return NEEDS_PRIVACY if unit is None else ""


def _checked_bins(value: Any) -> Bins:
    found = variable_of(value) if isinstance(value, Mapping) else value
    if not isinstance(found, Bins):
        raise SchemaError(f"bins must be Bins of the time, got {type(found).__name__}")
    if found.edges[0] != 0:
        raise SchemaError(
            f"edges of {found.name} must start at 0, where everybody's time begins: who enters later (left "
            "truncation) has no place in these sums"
        )
    if found.missing or found.open in ("below", "none") or len(found.edges) > _MOST_BINS + 1:
        raise SchemaError(
            f"{found.name} must be at most {_MOST_BINS} bins, open above alone: a missing or negative time has no bin"
        )
    return replace(found, open="both")  # as plan files leave it out; the clock opens it above


def _check_cap(cap: object) -> None:
    number = size("cap", cap, "the cumulative hazard up to which a person counts is 1")
    if number < CAP:
        raise SchemaError(f"cap must be 1, got {number:g}: below 1 one event alone moves the score past its bound")
    if number > CAP:
        raise SchemaError(f"cap must be 1, got {number:g}: beyond 1 intervals have missed too often; leave it out")


def _check_maps(schema: HazardSchema) -> None:
    if schema.transform and schema.transform[0].reads_cells:
        raise SchemaError("transform must not start with Cells: hazards read numbers; code such columns as 0 and 1")
    *before, last = schema.transform or (None,)
    if not isinstance(last, ConstantFeature) or any(isinstance(step, ConstantFeature) for step in before):
        raise SchemaError(
            "transform must end in ConstantFeature, and have no other: its value stands in the column of each bin"
        )


def _check_columns(schema: HazardSchema) -> None:
    if not schema.feature_names:
        raise SchemaError("feature_names must name the columns: hazards are read from a table, by name")
    for field, name in (("bins", schema.bins.name), ("event", schema.event)):
        if name in schema.feature_names:
            raise SchemaError(f"{field} names {name!r}, a column too: what follows the start is no column")
    levels: Any = schema.transform[0]
    if levels.kind == "levels" and [each.name for each in levels.outcomes] not in ([], [schema.event]):
        raise SchemaError(f"outcomes of Levels must be the event {schema.event!r} alone, or none")
    if schema.sizes["feature"] > _MOST_FEATURES:
        raise SchemaError(f"columns and bins must be at most {_MOST_FEATURES}, got {schema.sizes['feature']}")


def _check_constant(schema: HazardSchema) -> None:
    small = 0 < schema.constant <= schema.clip_norm  # infinity is no whole number
    if not small or 2 * round(schema.constant * schema.scale) ** 2 > schema.steps**2:
        raise SchemaError(
            f"the ConstantFeature must be above 0 and at most clip_norm / sqrt 2, got {schema.constant:g}: beyond, an "
            "event and the bins before it move the score by more than its bound; take 1 and a clip_norm of 2 or so"
        )


def _check_events(schema: HazardSchema) -> None:
    if schema.expected_events is None:
        return
    events = whole("expected_events", schema.expected_events, 1, "a public guess of the number of events")
    if schema.periods * _EVENTS_PER_BIN > events:
        raise SchemaError(
            f"bins has {schema.periods} bins for {events} expected events: with fewer than ten a bin the ratio is "
            f"wrong; take at most {max(events // _EVENTS_PER_BIN, 2)}"
        )
    settle(schema, expected_events=events)
