"""Measure one round of refinement.

A record counts fully or as zero: no error depends on a record and the published values together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import PlanError, SchemaError
from privstats.intake.arrays import is_tensor
from privstats.kinds.base import Kind
from privstats.kinds.classes import ClassSchema
from privstats.kinds.record_rows import class_rows, target_rows
from privstats.kinds.ridge import RecordSchema, RidgeSchema, target_grid
from privstats.kinds.worst import Record, Sums, WorstPair, added, dense, record_of
from privstats.moments.base import ExactClass, Moments, RealMoments, containers
from privstats.optional_dependencies import require
from privstats.records.reading import Labels, Targets
from privstats.records.row_cache import MappedRows
from privstats.schema.base import Adjacency, Statistic, by_letter, letters_of
from privstats.schema.checks import REQUIRED, settle, size
from privstats.schema.modules import Module, checked_gradients, module_of
from privstats.schema.public_values import Values
from privstats.schema.rounds import ROW_BITS, AdaptiveSchema, settle_round
from privstats.transforms import Transform

if TYPE_CHECKING:
    from privstats.moments.device_cache import DeviceCache
    from privstats.moments.device_rounds import DeviceRound
    from privstats.moments.gradient_map import Mapped, RoundValues
    from privstats.moments.grid import Ints
    from privstats.moments.record_sums import RecordTerms
    from privstats.moments.rounds import PieceMemory
    from privstats.records.opened import Opened

# fmt: off
_TABLE: tuple[Statistic, ...] = (
    Statistic("g", "pooled", ("target", "feature"), (1, 1), share=0.99,
        meaning="the sum of the change that each record would make to the model"),
    Statistic("k", "pooled", (), (0, 1), share=0.01,
        meaning="the sum of one number per record, at most 1, which sets the step size"),
)
"""Sum of residuals times mapped rows, and the one number kappa that sets the step size, in wire order."""
# fmt: on

GRADIENT_STATISTICS = letters_of(_TABLE)

_MAX_WEIGHTS = 1 << 22

_MAX_MODULE_BITS = 13  # squared norms of 4**(2 f) are exact


@dataclass(frozen=True)
class GradientSchema(AdaptiveSchema, Kind):
    """A gradient at published weights: g = sum r u', and kappa = sum k, one number.

    - Classes: ``u = (sqrt(1 - a^2) Mx / |Mx|, a)``, a = 0.1, ``p = softmax(W u)``. ``r = q (p - e_y)`` with
      ``q = min(1, c / |p - e_y|)``. ``k = q (1 - |p|^2)``. g is ``(classes, features + 1)``.
    - No classes: ``u = Mx``, clipped to norm 1, ``r = clip(y - w'x, -c, c) / c``. k is 1 if r was not clipped, else 0.
      g is ``(1, features)``.
    - A module: g ``(1, P)`` is the sum of records' cross-entropy gradients by all P weights, each clipped to
      ``residual_norm``. k is as for classes.

    A record adds at most ``residual_norm`` to g and 0 <= k <= 1, for *every* record and every M, W, w, c.

    Args:
        features: d, after ``transform``, at least 2.
        classes: C, at least 2; None for a regression.
        module: name of a :class:`~privstats.schema.modules.Module` that replaces the linear softmax.
        residual_norm: c, the norm to which r, or a module's full gradient, is clipped. 1 for a regression, which
            clips to the published c.
        expected_records, course_mu: n, stated publicly and never counted from the records, and the course's mu for one
            record, rounded. The server's recipe needs them, no bound does.
        clip_norm: R, the norm to which rows are clipped; 1 for classes.
        target_bound: Y, for a regression.
        grid_bits: f, 2 to 20, at most 13 for a module; u and r of norm 1 and ``residual_norm`` are 2**f steps long.
        nonnegative, transform, class_names, feature_names: as in :class:`ClassSchema`.

    Example:
        >>> schema = ps.GradientSchema(3, classes=2, residual_norm=0.5, expected_records=1_000, course_mu=0.3)
        >>> schema.sizes, schema.needs  # what is summed, and the published values that the measurement reads
        ({'target': 2, 'feature': 4}, {'M': (3, 3), 'W': (2, 4)})
    """

    task: ClassVar[str] = "gradients"
    purpose: ClassVar[str] = (
        "a step in which a model is improved: which way its numbers should move, on average over all records"
    )
    no_persons: ClassVar[str] = ""
    needs_privacy: ClassVar[str] = (
        "a gradient cannot be released without differential privacy: two rounds at chosen weights reveal one "
        "record's row exactly; add a Privacy to the plan"
    )
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = GRADIENT_STATISTICS
    proved: ClassVar[str] = "gk"
    statements: ClassVar[tuple[str, ...]] = ("norms",)

    features: int = REQUIRED
    classes: int | None = None
    _: KW_ONLY
    residual_norm: float
    expected_records: int
    course_mu: float
    clip_norm: float = 1.0
    target_bound: float | None = None
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    module: str | None = None

    def __post_init__(self) -> None:
        settle_round(self)
        _check_module(self)
        settle(self, residual_norm=size("residual_norm", self.residual_norm, ".3 suits a softmax, 1 a regression"))
        if self.classes is None:
            if self.target_bound is None or self.class_names is not None:
                raise SchemaError("a gradient without classes is a regression's: set target_bound, and no class_names")
            if self.residual_norm != 1:
                raise SchemaError(f"residual_norm of a regression must be 1, got {self.residual_norm}: c clips it")
            bound = size("target_bound", self.target_bound, "the largest target norm, publicly known")
            settle(self, target_bound=bound)
            return
        if self.target_bound is not None:
            raise SchemaError("a gradient of classes has no target_bound; omit it")

    @property
    def goal(self) -> Labels | Targets:
        """What y holds."""
        return Targets() if self.classes is None else Labels.of(self.classes, self.class_names)

    @property
    def sizes(self) -> dict[str, int]:
        """Rows of g and entries of u; for a module one row of P weights."""
        if self.network is not None:
            return {"target": 1, "feature": self.network.weights(self.features, self.classes or 1)}
        return {"target": self.classes or 1, "feature": self.features + (self.classes is not None)}

    @property
    def network(self) -> Module | None:
        """The module that ``module`` names; None for a linear model."""
        if self.module is None:
            return None
        return module_of(self.module)

    @property
    def rows(self) -> ClassSchema | RidgeSchema:
        """The schema, on a finer grid, that reads records."""
        if self.classes is not None:
            return class_rows(self, self.classes)
        return target_rows(self, self.target_bound or 1.0, ROW_BITS)

    @property
    def record(self) -> str:
        """Description of one record."""
        return self.rows.record

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: 2**f per 1, for r per ``residual_norm``."""
        targets = 1.0 if statistic == "k" else self.residual_norm
        return by_letter(self.table, statistic)[0].scale(self.grid_steps, self.grid_steps / targets)

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """M ``(d, d)``, and W ``(C, d + 1)``; a module's w, ``(P,)`` or longer; or w ``(d,)`` and c."""
        square = (self.features, self.features)
        if self.classes is None:
            return {"M": square, "w": (self.features,), "c": ()}
        if self.network is not None:
            return {"M": square, "w": (self.network.values(self.features, self.classes or 1),)}
        return {"M": square, "W": (self.classes, self.features + 1)}

    @property
    def packages(self) -> tuple[str, ...]:
        """The module's packages."""
        return () if self.network is None else self.network.packages

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse values of another shape, wider than 20 bits, tiny or enormous, or c at most 0."""
        super().check_values(values)
        if "c" in values and int(values["c"].integers) < 1:
            raise PlanError("published c must be above 0: it is what residuals are clipped to")

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "k"

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2: two records' r u' differ by at most 2 c, and their kappa by 1 (docs/proofs/rounds.md)."""
        gradient, curvature = weights.get("g", 0.0) * self.residual_norm**2, weights.get("k", 0.0)
        return gradient + curvature if adjacency == "add-remove" else 4 * gradient + curvature

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(4, 3, residual_norm=0.3, expected_records=100, course_mu=1.0)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(_of_record))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return GradientMoments, RealGradientMoments

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        """Return the exact sums of a round.

        Args:
            values: published and admitted.

        Guarantee:
            For all admitted values, in integers, and on any device: every record adds r u' with |r| |u| <= 2**(2 f), or
            for a module one row of at most that length. It adds 0 <= kappa <= 2**f. A record with NaN or infinite
            entries adds nothing and is not in ``records``.

        Raises:
            MissingExtraError: a module's packages are not installed; no record is read then.
        """
        read = self.rows
        sums = moments.grid.sums_of(self, "gk")
        count = 0
        _require_packages(self)
        map_ = self.rows, self.clip_norm, self.grid_steps, values["M"]
        memory = moments.rounds.PieceMemory()
        there: DeviceRound | None = None
        # A module of another package reads arrays alone.
        pieces = records.pieces() if self.network is not None else records.placed_pieces()
        for place, (rows, targets) in enumerate(pieces):
            if is_tensor(rows):
                there = there or _on_device(self, read, records, values, map_)
                there.add(rows, targets)
                continue
            form = partial(_rows_behind, self, read, rows, values["M"], memory)
            behind = records.mapped(map_, place, rows, form)
            for total in sums.values():
                total.admit(len(rows))
            for start in range(0, len(rows), _max_rows(self)):
                part = slice(start, start + _max_rows(self))
                mapped, fine = _map(self, read, behind.part(part), np.asarray(targets[part]), values)
                sums["g"].partial += mapped.residuals.T @ mapped.rows
                sums["k"].partial += mapped.kappa.sum()
                count += int(np.count_nonzero(fine))
        result = GradientMoments(self, sums["g"].result(), int(sums["k"].result()), count)
        return result if there is None else result + _of_device(self, there)

    def terms_of(self, records: Opened, values: Mapping[str, Values]) -> RecordTerms:
        """Return each record's contribution."""
        _require_packages(self)
        several = records.pieces(_max_rows(self))
        return moments.record_sums.RecordTerms.joined(_added(self, rows, y_part, values) for rows, y_part in several)


def _check_module(schema: GradientSchema) -> None:
    module = schema.network
    if module is None:
        return
    if schema.classes is None:
        raise SchemaError("a module's scores distinguish classes: set classes, or omit module")
    if schema.grid_bits > _MAX_MODULE_BITS:
        raise SchemaError(f"grid_bits of a module must be at most {_MAX_MODULE_BITS}, got {schema.grid_bits}; lower it")
    weights = module.weights(schema.features, schema.classes)
    if weights > _MAX_WEIGHTS:
        raise SchemaError(f"module has {weights:,} weights, and a round takes at most {_MAX_WEIGHTS:,}: narrow it")


# --- the sums

_ENTRIES = 1 << 21  # gradient entries of single records in memory at once


GradientMoments, RealGradientMoments = containers(
    "Gradient", GradientSchema, _TABLE, ("classes", "features"), "records", "published"
)


def _added(schema: GradientSchema, rows: NDArray[Any], y: NDArray[Any], values: Mapping[str, Values]) -> RecordTerms:
    behind = _rows_behind(schema, schema.rows, rows, values["M"], moments.rounds.PieceMemory())
    mapped, fine = _map(schema, schema.rows, behind, y, values)
    sums: Any = {"g": (mapped.residuals[fine], mapped.rows[fine]), "k": (mapped.kappa[fine, None], None)}
    return moments.record_sums.RecordTerms(fine, (moments.record_sums.Term(sums),), {})


def _require_packages(schema: GradientSchema) -> None:
    if schema.module is not None:
        require(*schema.packages, by=f"measuring a round of {schema.module}")


def _max_rows(schema: GradientSchema) -> int:
    return max(1, _ENTRIES // schema.sizes["feature"])


def _rows_behind(
    schema: GradientSchema, read: RecordSchema, rows: NDArray[Any], M: Values, memory: PieceMemory
) -> MappedRows:
    """Return a piece's mapped rows, in memory that the next piece overwrites."""
    count, d = len(rows), schema.features
    grid, fine = moments.rounds.grid_rows(read, rows, memory.rows("grid", count, d))
    product = memory.rows("product", count, d)
    if schema.classes is None:
        return _behind(schema, read, grid, fine, M, product)
    return _behind(schema, read, grid, fine, M, memory.rows("unit", count, d + 1), product)


def _behind(
    schema: GradientSchema, read: RecordSchema, grid: Ints, fine: Any, M: RoundValues, *memory: Ints
) -> MappedRows:
    """Return mapped rows.

    Args:
        memory: of :func:`~privstats.moments.gradient_map.short_rows` or
            :func:`~privstats.moments.gradient_map.unit_rows`; none: new memory.
    """
    if schema.network is None and isinstance(read, RidgeSchema):
        return MappedRows(moments.gradient_map.short_rows(schema, grid, M, *memory), grid, fine)
    return MappedRows(moments.gradient_map.unit_rows(schema, grid, M, *memory), None, fine)


def _map(
    schema: GradientSchema,
    read: ClassSchema | RidgeSchema,
    rows: MappedRows,
    targets: NDArray[Any],
    values: Mapping[str, Values],
) -> tuple[Mapped, NDArray[np.bool_]]:
    """Return records' contributions, and which are finite; others add zero."""
    fine = rows.fine
    if schema.network is not None:
        gradients, kappa = checked_gradients(schema, schema.network, rows.unit, targets.astype(np.intp), values["w"])
        mapped = moments.gradient_map.Mapped(gradients, np.ones((len(kappa), 1)), kappa)  # a row, with residual 1
    elif isinstance(read, ClassSchema):
        mapped = _linear(schema, rows, targets.astype(np.intp), values)
    else:
        goals = targets.astype(np.float64).reshape(len(targets), 1)
        finite = np.isfinite(goals[:, 0])
        fine = fine & finite
        on_grid = np.empty_like(goals)
        target_grid(read).quantize(np.where(finite[:, None], goals, 0.0), on_grid)
        mapped = _linear(schema, rows, on_grid, values)
    return (mapped if fine.all() else _among(mapped, fine)), fine


def _linear(schema: GradientSchema, rows: MappedRows, targets: Any, values: Mapping[str, Any]) -> Mapped:
    """Return contributions to a linear model's round.

    Args:
        targets: labels ``(n,)``, or targets on their grid ``(n, 1)``.
        values: published, on the rows' device.
    """
    if rows.grid is None:
        return moments.gradient_map.softmax_of_units(schema, rows.unit, targets, values["W"])
    return moments.gradient_map.residual_of_units(schema, rows.unit, rows.grid, targets, values["w"], values["c"])


def _among(mapped: Mapped, fine: Any) -> Mapped:
    """Set the contributions of other records to zero."""
    return moments.gradient_map.Mapped(mapped.rows, mapped.residuals * fine[:, None], mapped.kappa * fine)


def _on_device(
    schema: GradientSchema,
    read: ClassSchema | RidgeSchema,
    records: Opened,
    values: Mapping[str, Values],
    map_: object,
) -> DeviceRound:
    def behind(rows: Any, fine: Any, values: Mapping[str, Any]) -> MappedRows:
        return _behind(schema, read, rows, fine, values["M"])

    def sums(rows: MappedRows, targets: Any, fine: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        mapped = _among(_linear(schema, rows, targets, values), fine)
        return {"g": mapped.residuals.T @ mapped.rows, "k": mapped.kappa.sum()}

    form = moments.device_rounds.Form(sums, behind)
    exclude = None if records.excluded is None else records.excluded.exclude
    cache: DeviceCache | None = None
    if records.cache is not None:
        cache = moments.device_cache.DeviceCache(records.cache, map_, schema.grid_bits)
    return moments.device_rounds.DeviceRound(schema, read, values, form, exclude, cache=cache)


def _of_device(schema: GradientSchema, there: DeviceRound) -> Moments:
    sums, count = there.result()
    return GradientMoments(schema, sums["g"], int(sums["k"]), count)


# --- the two data sets that the certificate compares


def _pairs(schema: GradientSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    R = schema.grid_steps
    one = record_of([[0, R]], r=[[0, R]], k=[[0, R]])
    return [(one, record_of([[0, R]], r=[[0, -R]], k=[]))]


def _of_record(_: GradientSchema, record: Record) -> Sums:
    return {("g", 0): np.outer(dense(record["r"]), dense(record["x"])), ("k", 0): dense(record["k"])}
