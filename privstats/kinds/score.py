"""Define the score and information of a logistic or Poisson regression: parameters, checks and the bound per record.

The sums themselves are in :mod:`privstats.kinds.score_sums`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

from privstats.errors import SchemaError
from privstats.kinds.base import Kind
from privstats.kinds.classes import ClassSchema
from privstats.kinds.column_facts import gap_facts
from privstats.kinds.record_rows import class_rows, target_rows
from privstats.kinds.ridge import RidgeSchema
from privstats.kinds.score_sums import measured_scores, score_terms
from privstats.kinds.worst import ONE, Record, WorstPair, added, of_score, record_of
from privstats.moments.base import ExactClass, Moments, RealMoments, containers
from privstats.printable import at_least
from privstats.records.reading import Labels, Targets
from privstats.schema.base import OUTCOME, Adjacency, Statistic, by_letter, letters_of
from privstats.schema.checks import REQUIRED, as_int, checked_vectors, settle, size
from privstats.schema.public_values import Values
from privstats.schema.rounds import AdaptiveSchema
from privstats.transforms import ByArm, ConstantFeature, Transform, output_features

if TYPE_CHECKING:
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened

# fmt: off
_LOGISTIC: tuple[Statistic, ...] = (
    Statistic("g", "pooled", ("feature",), (1, 1), share=0.591,
        meaning="the sum of the change that each record would make to the model"),
    Statistic("H", "pooled", ("feature", "feature"), (2, 0), symmetric=True, share=0.409,
        meaning="the sum of products of every two features, weighted by the variance of each predicted outcome"),
)
"""Score and information of a logistic regression; at these shares the information costs nothing beside the score."""
# fmt: on

_POISSON = tuple(replace(row, share=share) for row, share in zip(_LOGISTIC, (0.7, 0.3), strict=True))
"""Score and information of a Poisson regression."""

SQUARE = Statistic(
    "J",
    "pooled",
    ("feature", "feature"),
    (2, 0),
    symmetric=True,
    share=0.05,
    meaning="the sum of products of every two entries of the change that each record would make to the model",
)
"""The score's second moment, for errors that assume no variance of the outcome."""

# fmt: off
DISPERSION: tuple[Statistic, ...] = (
    Statistic("Q", "pooled", (), (0, 2), share=0.025,
        meaning="the sum of squared differences of counts from their predicted means"),
    Statistic("V", "pooled", (), (0, 2), share=0.025, meaning="the sum of squared predicted means"),
)
"""Sums from which the dispersion of a negative binomial model follows; J's squared differences have more noise."""
# fmt: on

Family: TypeAlias = Literal["logistic", "poisson"]

Seen: TypeAlias = Literal["outcome"]

Errors: TypeAlias = Literal["robust", "model"]

Overdispersion: TypeAlias = Literal["estimated"]

_TABLES: Mapping[tuple[str, bool], tuple[Statistic, ...]] = {
    ("logistic", False): _LOGISTIC,
    ("poisson", False): _POISSON,
    # The first two keep their ratio, so that a logistic regression's information stays free.
    ("logistic", True): (replace(_LOGISTIC[0], share=0.56145), replace(_LOGISTIC[1], share=0.38855), SQUARE),
    ("poisson", True): (replace(_POISSON[0], share=0.665), replace(_POISSON[1], share=0.285), SQUARE),
}

_ASSUMED: Mapping[Family, str] = {
    "logistic": "that log odds are linear in the columns",
    "poisson": "that the variance of counts with equal columns equals their mean, and counts of visits or relapses "
    "usually vary more",
}
"""The assumption of the model's own standard errors."""

_WEIGHTS = (
    "records weigh 1 / (1 + {0:g} mean), as a negative binomial model of dispersion {0:g} weighs them; the number is "
    "public, and intervals hold where it is wrong"
)
"""The consequence of a declared dispersion."""

_COARSE = (
    "residuals are truncated toward 0 to steps of target_bound / 2^{}, which raises log rates by about {:.1g}: set {}"
)
_SHIFT = 0.002  # of a log rate, up to which nothing is stated: a fifth of the standard error of 10,000 events
_FINEST = 20

# Sums of products of row entries and 20-bit weights are exact in float64.
_MAX_FEATURES = 1 << 12


@dataclass(frozen=True)
class ScoreSchema(AdaptiveSchema, Kind):
    """Score and information of a generalised linear model at published weights w.

    ``g = sum (y - m) u`` and ``H = sum v u u'`` over rows u of norm at most R (``clip_norm``):

    - logistic: ``m = 1 / (1 + exp(-w'u))``, ``v = m (1 - m)``, y in {0, 1}.
    - Poisson: ``m = exp(w'u)``, at most Y, ``v = m``, y truncated to 0..Y. With an ``exposure`` e, such as
      person-years, ``m = e / E exp(w'u)``, with ``exp(w'u)`` at most Y: coefficients are of the rate per exposure.
    - negative binomial: Poisson's m, with both y and m multiplied by ``1 / (1 + alpha m)``, the weights of the variance
      ``m + alpha m^2``. Intervals hold at a wrong alpha: neither the mean nor robust errors rest on it.

    Robust errors add ``J = sum (y - m)^2 u u'``, from which standard errors need no assumption about the outcome's
    variance. The bounds hold for *every* w. A course builds the rounds (:class:`~privstats.course.Newton`).

    Args:
        family: ``"logistic"`` or ``"poisson"``.
        target_bound: Y, for Poisson.
        rate: a public guess of the mean outcome, to start from; with an exposure, of events per unit of exposure.
        exposure: for Poisson, the name of the column of exposures, such as person-years; y is then ``(n, 2)``: counts,
            then exposures. A record whose exposure is not above 0 and at most ``exposure_bound`` is unreadable.
        exposure_bound: E, the largest exposure, publicly known. A rate counts up to Y / E per unit of exposure.
        negative_binomial: alpha, for Poisson with robust errors: a public guess, such as an earlier study's.
        overdispersion: ``"estimated"``: also sum Q, of ``(y - m)^2``, and V, of ``m^2``, for Poisson with robust errors
            and an intercept, for 5 % of the budget. The table then has alpha of the variance ``m + alpha m^2``.
        outcomes: with rows by arm, the number of columns of y; none is read.
        features, clip_norm, grid_bits, nonnegative, transform, feature_names: as in :class:`ClassSchema`. After
            ``ByArm`` the outcome is the arm, u the row of either arm, and y adds nothing: a propensity of treatment
            (:class:`~privstats.Effect`).
        missing: ``"outcome"``: the outcome is whether y is present, u the full row, and y's value adds nothing: a
            propensity of being observed.
        errors: ``"robust"`` (default): also sum J. Its share of 5 % makes the noise in g up to 5 % larger.
            ``"model"``: errors follow from H, which assumes the family's variance. A propensity has no J. A plan file
            without ``errors`` means ``"model"``.

    Example:
        >>> schema = ps.ScoreSchema(2, clip_norm=2.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> schema.sizes, schema.needs  # what is summed, and the published values that the measurement reads
        ({'feature': 2}, {'w': (2,)})
    """

    task: ClassVar[str] = "score"
    purpose: ClassVar[str] = "a step of a regression for an outcome that is yes or no, or a count"
    no_persons: ClassVar[str] = ""
    ignorable: ClassVar[str] = OUTCOME
    proved: ClassVar[str] = "gHJQV"
    nearer: ClassVar[bool] = True
    levels_apart: ClassVar[bool] = True
    unstated: ClassVar[Mapping[str, Any]] = {"errors": "model"}

    features: int = REQUIRED
    clip_norm: float = REQUIRED
    _: KW_ONLY
    family: Family = "logistic"
    target_bound: float | None = None
    rate: float | None = None
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None
    outcomes: int | None = None
    missing: Seen | None = None
    errors: Errors | None = None
    exposure: str | None = None
    exposure_bound: float | None = None
    negative_binomial: float | None = None
    overdispersion: Overdispersion | None = None

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))
        _check_outcomes(self)
        _check_missing(self)
        settle(self, errors=_checked_errors(self))
        if self.by_arm and self.family != "logistic":
            raise SchemaError("the outcome is an arm where the transform ends in ByArm: set family='logistic'")
        if self.family not in get_args(Family):
            raise SchemaError(f"family must be 'logistic' or 'poisson', got {self.family!r}")
        if self.features > _MAX_FEATURES:
            raise SchemaError(f"features must be at most {_MAX_FEATURES}, got {self.features}; project them first")
        if (self.family == "poisson") != (self.target_bound is not None):
            raise SchemaError("target_bound is the largest count of a Poisson regression: set it there, and only there")
        if self.target_bound is not None:
            settle(self, target_bound=size("target_bound", self.target_bound, "the largest count, publicly known"))
        _check_exposure(self)
        _check_rate(self)
        _check_negative_binomial(self)
        _check_overdispersion(self)

    @property
    def table(self) -> tuple[Statistic, ...]:
        """The family's statistics."""
        own = _TABLES[self.family, self.errors == "robust"]
        if self.overdispersion is None:
            return own
        return (*(replace(row, share=0.95 * (row.share or 0)) for row in own), *DISPERSION)

    @property
    def statistics(self) -> str:
        """Sent letters, in wire order."""
        return letters_of(self.table)

    @property
    def by_arm(self) -> bool:
        """Whether the outcome is the treatment arm."""
        return self.missing is None and self._in_arms

    @property
    def is_propensity(self) -> bool:
        """Whether the rounds fit a propensity for the weights of an effect, which no table reads."""
        return self._in_arms or self.missing is not None

    @property
    def _in_arms(self) -> bool:
        return bool(self.transform) and isinstance(self.transform[-1], ByArm)

    @property
    def parts(self) -> tuple[slice, ...]:
        """Slices of w, of which each record reads only one."""
        half = self.features // 2
        return (slice(0, half), slice(half, None)) if self._in_arms and self.missing else (slice(None),)

    @property
    def appended(self) -> int:  # type: ignore[override]
        """Number of features beyond the transform's; rows by arm have half of them, so it is negative."""
        if not self.by_arm:
            return 0
        outputs = output_features(self.transform)  # declared columns may determine the features
        return -self.features if outputs is None else -(outputs // 2)

    @property
    def goal(self) -> Labels | Targets:
        """What y holds."""
        if self.is_propensity:
            return Targets(self.outcomes or 1, gaps=bool(self.missing))
        if self.family == "logistic":
            return Labels(range(2))
        return Targets() if self.exposure is None else Targets(2, names=("the count", repr(self.exposure)))

    @property
    def sizes(self) -> dict[str, int]:
        """Axis length."""
        return {"feature": self.features}

    @property
    def outcome(self) -> float:
        """Largest outcome."""
        return self.target_bound or 1.0

    @property
    def constant(self) -> float | None:
        """Value of a last intercept column, if any."""
        if self._in_arms and self.missing:
            return None
        last = self.transform[-1 - self.by_arm] if len(self.transform) > self.by_arm else None
        return last.value if isinstance(last, ConstantFeature) else None

    @property
    def rows(self) -> ClassSchema | RidgeSchema:
        """The schema that reads records."""
        if self.is_propensity:
            features = self.features if self.missing else 2 * self.features
            missing = "left out" if self.missing else None
            more: dict[str, Any] = {"targets": self.outcomes or 1, "missing": missing, "nonnegative": False}
            return target_rows(self, 1.0, self.grid_bits, features=features, **more)
        if self.family == "logistic":
            return class_rows(self, 2, self.grid_bits)
        return target_rows(self, self.outcome, self.grid_bits)

    @property
    def record(self) -> str:
        """Description of one record."""
        if self.by_arm:
            return f"{self.columns}, the arm of a treatment among them; the outcome is not read"
        if self.missing:
            return f"{self.columns}, and whether an outcome exists, whose value is not read"
        outcome = "an outcome of 0 or 1" if self.family == "logistic" else f"a count of at most {self.outcome:g}"
        if self.exposure is not None:
            return f"{self.columns}, the exposure {self.exposure} and {outcome}"
        return f"{self.columns} and {outcome}"

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: rows 2**f per R, residuals 2**f per largest outcome, v in units of that.

        A record's score has 2**f steps per R times the largest outcome in J.
        """
        row = by_letter(self.sent, statistic)[0]
        if statistic == "H":
            return row.scale(self.scale) / self.outcome
        if statistic == "J":
            return row.scale(self.scale / self.outcome)
        return row.scale(self.scale, self.grid_steps / self.outcome)

    @property
    def column_facts(self) -> tuple[str, ...]:
        """Facts on gaps in declared columns, for the table in which the rounds end."""
        return gap_facts(self, "WARNING: ")

    @property
    def facts(self) -> tuple[str, ...]:
        """Facts on gaps in declared columns, and on the assumption of the model's own errors."""
        errors = () if self.is_propensity else errors_facts(self.errors, _ASSUMED[self.family])
        alpha = self.negative_binomial
        weights = () if alpha is None else (_WEIGHTS.format(alpha),)
        return (*self.column_facts, *errors, *weights, *_grid_facts(self))

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The weights w, ``(d,)``."""
        return {"w": (self.features,)}

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "QV"

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2; m is free in the bound, whatever was published. So it is whatever the exposure is.

        Logistic |r| = p, v = p (1 - p); Poisson r = y - m, v = m, both in 0..Y (docs/proofs/rounds.md). J adds its own
        term: a record's c c' has norm |c|^2 <= (R Y)^2, which the record attains that attains g's and H's terms at
        default shares. Two such matrices are positive semidefinite, so the trace of their product is at least 0, and
        their squared distance is at most the sum of both squares.

        Q and V add terms of their own, too: a record's (y - m)^2 and m^2 are in 0..Y^2, so their squares are at most
        Y^4, and so are those of the differences of two. At m = Y and y = 0 all letters are at their largest under
        add-remove.

        With ``negative_binomial``, ``omega = 1 / (1 + alpha m)`` is in (0, 1], so ``omega y`` and ``omega m`` are in
        0..Y as y and m are, and a record adds what a Poisson record of these two adds: its bound is Poisson's.
        """
        square = weights.get("J", 0.0) * (self.clip_norm * self.outcome) ** 4
        dispersion = (weights.get("Q", 0.0) + weights.get("V", 0.0)) * self.outcome**4
        score = weights.get("g", 0.0) * (self.clip_norm * self.outcome) ** 2
        information = weights.get("H", 0.0) * (self.clip_norm**2 * self.outcome) ** 2
        if self.family == "logistic":
            add = _logistic(score, information)
            return add + square if adjacency == "add-remove" else 2 * add + 2 * score + 2 * square
        if adjacency == "add-remove":
            return score + information + square + dispersion
        replaced = 4 * score + information
        if score <= 2 * information and information:
            replaced = max(replaced, 2 * score + 2 * information + score**2 / (2 * information))
        return replaced + 2 * square + dispersion

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(4, 1.0)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(of_score))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return ScoreMoments, RealScoreMoments

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        """Return the exact sums of a round.

        Guarantee:
            For all admitted weights, in integers, and on any device: every record adds r u and a a' with |u| <= 2**f,
            |r| <= 2**f |y - m| and |a|^2 <= 4**f v. y, m and v are relative to the largest outcome. r and v have the
            same m, as the joint sensitivity needs. With J it also adds c c' with |c| <= |r|, with Q and V the squares
            of y - m and m, rounded to steps of 2**-f. A record with NaN or infinite entries adds nothing and is not in
            ``records``, or raises.

        Raises:
            RecordError: an unreadable row by arm or with ``missing``, or an exposure out of range, whatever was
                published.
        """
        return measured_scores(self, records, values)

    def terms_of(self, records: Opened, values: Mapping[str, Values]) -> RecordTerms:
        """Return each record's contribution."""
        return score_terms(self, records, values)


ScoreMoments, RealScoreMoments = containers(
    "Score",
    ScoreSchema,
    _LOGISTIC,
    ("family", "features"),
    "records",
    "published",
    "clip_report",
    optional=(SQUARE, *DISPERSION),
)


def _check_missing(schema: ScoreSchema) -> None:
    if schema.missing not in (None, "outcome"):
        raise SchemaError(f"missing must be 'outcome' or omitted, got {schema.missing!r}")
    if schema.missing and (schema.family != "logistic" or schema.nonnegative or schema.rate or schema.outcomes):
        raise SchemaError(
            "missing='outcome' models whether one y is known: set family='logistic', no rate, outcomes or nonnegative"
        )


def _check_exposure(schema: ScoreSchema) -> None:
    if (schema.exposure is None) != (schema.exposure_bound is None):
        raise SchemaError("exposure and exposure_bound go together: name the column, and its largest value")
    if schema.exposure is None:
        return
    if not isinstance(schema.exposure, str) or not schema.exposure:
        raise SchemaError(f"exposure must be the name of a column, got {schema.exposure!r}; or omit it")
    if schema.family != "poisson":
        raise SchemaError("exposure is for rates of counts: set family='poisson', or omit it")
    if schema.exposure in (schema.feature_names or ()):
        raise SchemaError(f"exposure names {schema.exposure!r}, a column too: omit it from feature_names")
    bound = size("exposure_bound", schema.exposure_bound, "the largest exposure, publicly known")
    settle(schema, exposure_bound=bound)


def checked_errors(errors: object, usual: Errors = "robust") -> Errors:
    """Return the stated errors, or the usual ones where none are stated."""
    if errors is None:
        return usual
    if errors not in get_args(Errors):
        raise SchemaError(f"errors must be 'robust' or 'model', or omitted, got {errors!r}")
    return "robust" if errors == "robust" else "model"


def errors_facts(errors: Errors | None, assumed: str) -> tuple[str, ...]:
    """State what the model's own errors assume; nothing where errors are robust."""
    if errors == "robust":
        return ()
    return (
        f"intervals will assume {assumed}; where that is false they miss too often: set errors = "
        '"robust", which does not assume it, for 5 % of the budget',
    )


def _grid_facts(schema: ScoreSchema) -> tuple[str, ...]:
    """State that the grid is coarse beside the mean count.

    Most counts are 0 where the mean is small. Their residuals -m lose half a step on average, so the score is 0 at a
    mean that is larger by that.
    """
    if schema.family != "poisson" or schema.rate is None:
        return ()
    mean = schema.rate * (schema.exposure_bound or 2.0) / 2
    shift = schema.outcome / (2 * schema.grid_steps) / mean
    if shift <= _SHIFT:
        return ()
    bits = schema.grid_bits + math.ceil(math.log2(shift / _SHIFT))
    remedies = []
    if schema.grid_bits < _FINEST:
        remedies.append(f"grid_bits = {min(bits, _FINEST)}, which costs upload bits alone")
    if bits > _FINEST:
        bound = at_least(mean * _SHIFT * 2.0 ** (_FINEST + 1), ".3g")
        remedies.append(f"a target_bound of at most {bound}")
    return (_COARSE.format(schema.grid_bits, shift, ", and ".join(remedies)),)


def _checked_errors(schema: ScoreSchema) -> Errors:
    errors = checked_errors(schema.errors, "model" if schema.is_propensity else "robust")
    if schema.is_propensity and errors == "robust":
        raise SchemaError("errors is for a regression's table; a propensity has none: omit it with ByArm or missing")
    return errors


def _check_outcomes(schema: ScoreSchema) -> None:
    levels = schema.reading.levels
    if levels is not None and levels.outcomes and not schema._in_arms:
        raise SchemaError("outcomes of Levels must be empty: the outcome of a score is 0 and 1, or a count")
    if schema.outcomes is None:
        return
    if not schema.by_arm:
        raise SchemaError("outcomes is the number of columns of y for rows by arm, which these are not: omit it")
    settle(schema, outcomes=as_int("outcomes", schema.outcomes, 2, "omit it where there is one"))


def _check_rate(schema: ScoreSchema) -> None:
    if schema.rate is None:
        return
    rate = size("rate", schema.rate, "a public guess of the mean outcome")
    largest = schema.outcome / (schema.exposure_bound or 1.0)
    if rate >= largest or not math.isfinite(rate):
        per = "" if schema.exposure is None else f" over exposure_bound, {schema.exposure_bound:g}"
        raise SchemaError(f"rate must be below the largest outcome{per}, {largest:g}, got {rate:g}")
    if schema.constant is None:
        raise SchemaError("rate is a guess for the intercept: end the transform in ConstantFeature, or omit rate")
    settle(schema, rate=rate)


def _check_negative_binomial(schema: ScoreSchema) -> None:
    if schema.negative_binomial is None:
        return
    if schema.family != "poisson" or schema.errors != "robust":
        raise SchemaError(
            "negative_binomial weighs counts by a guess of their variance: set family='poisson' and errors='robust', "
            "which do not rest on the guess, or omit it"
        )
    alpha = size("negative_binomial", schema.negative_binomial, "a public guess of the variance beyond the mean")
    if not _LEAST <= alpha <= 1 / _LEAST:
        raise SchemaError(f"negative_binomial must be from {_LEAST:g} to {1 / _LEAST:g}, got {alpha:g}; 0: omit it")
    settle(schema, negative_binomial=alpha)


_LEAST = 1e-3


def _check_overdispersion(schema: ScoreSchema) -> None:
    if schema.overdispersion is None:
        return
    if schema.overdispersion not in get_args(Overdispersion):
        raise SchemaError(f"overdispersion must be 'estimated', or omitted, got {schema.overdispersion!r}")
    if schema.family != "poisson" or schema.errors != "robust":
        raise SchemaError(
            "overdispersion is read from counts with robust errors: set family='poisson' and errors='robust', or omit "
            "it"
        )
    if schema.negative_binomial is not None:
        raise SchemaError("overdispersion estimates what negative_binomial declares: state one of them")


# --- the sensitivity, and the two data sets that the certificate compares


def _logistic(score: float, information: float) -> float:
    """Return max over p of score p^2 + information p^2 (1 - p)^2.

    It is at p = 1 or the smaller root of 1 + rho (1 - p)(1 - 2p) = 0, rho = information / score.
    """
    if score == 0:
        return information / 16
    rho = information / score
    places = [1.0] if rho < 8 else [1.0, (3 - math.sqrt(1 - 8 / rho)) / 4]
    return max(score * p * p + information * (p * (1 - p)) ** 2 for p in places)


def _pairs(schema: ScoreSchema, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    H, g = weights.get("H", 0.0), weights.get("g", 0.0)
    means = [ONE, ONE // 2]
    if schema.family == "logistic" and g and 8 * g < H:
        means.append(int((3 - math.sqrt(1 - 8 * g / H)) / 4 * ONE))
    ones = [_record(schema, 0, m, 0) for m in means]
    others = [_record(schema, place, m, y) for place in (0, 1) for m, y in [*((m, 0) for m in means), (0, ONE)]]
    if schema.overdispersion is not None:  # Q is apart from 0 the most
        others.append(_record(schema, 0, 0, 0))
    return [(one, other) for one in ones for other in others]


def _record(schema: ScoreSchema, place: int, m: int, y: int) -> Record:
    R = schema.grid_steps
    residual = abs(y - m) * R // ONE * (1 if y >= m else -1)
    variance = m * (ONE - m) // ONE if schema.family == "logistic" else m
    root = math.isqrt(R * R * variance // ONE)
    ends: dict[str, Any] = {"r": [[0, residual]] if residual else [], "a": [[place, root]] if root else []}
    if schema.errors == "robust":
        ends["c"] = [[place, residual]] if residual else []
    if schema.overdispersion is not None:
        ends["k"] = [[0, m * R // ONE]] if m else []
    return record_of([[place, R]], m=m, y=y, **ends)
