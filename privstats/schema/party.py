"""The schemas of a study that protects whole parties: one direction of norm 1 of each, however many records it holds.

Bounds and shapes only; the map from records to integers is in ``moments.parties``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import ClassVar

from privstats.schema.base import Predicted, Schema
from privstats.schema.checks import GIVEN, checked_vectors, settle
from privstats.schema.classes import ClassSchema
from privstats.schema.gradients import check_exact, check_widths, class_rows, settle_classes
from privstats.schema.public_values import Values
from privstats.schema.statistic import Statistic, by_letter, letters_of
from privstats.transforms import Transform

__all__ = ["PartySchema", "PartyUpdateSchema"]

_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "P",
        "pooled",
        ("class", "feature"),
        (0, 1),
        meaning="the sum of one vector of each party, at most 1 long, which points to what tells the classes apart",
    ),
)
"""One direction of each party, C x d numbers of norm 1 at most."""

_UPDATE_TABLE: tuple[Statistic, ...] = (
    replace(
        _TABLE[0],
        meaning="the sum of one vector of each party, at most 1 long: what its records would change in the weights "
        "that the plan publishes",
    ),
)
"""The same for updates of published weights."""


@dataclass(frozen=True)
class PartySchema(Schema):
    """One direction of each party: P, the sum of ``V_k``, C x d numbers, in which every party weighs the same.

    A party with rows X and one-hot labels Y descends from zero on its own softmax, without an intercept: thirty
    accelerated steps ``W += C / e (Y - softmax(XW'))'X / n`` with ``e = sum |x|^2 / n``, and sends W at length 1. A
    party may do anything to its own records before the clip, so its descent costs nothing.
    ``heads.PartyDiscriminant`` reads the release. It is for promises for whole parties; for one record a
    :class:`ClassSchema` is far better. The steps are made with whole numbers (``moments.parties``): order,
    batches, container and machine change no bit. A party's rows are held in memory, four bytes a number.

    Guarantee:
        Unit one client, which counts as one record of this schema (``max_records_per_client=1``). ``|V|_F <= 2**f``
        holds in whole numbers for *every* set of records, because the whole numbers themselves are shortened
        (``moments.parties.shortened``): no float bounds anything. So mu = 1 / sigma for a party added or removed, and
        2 / sigma for one exchanged for another; both are attained. A party without records sends zeros. Source: the
        Gaussian mechanism on a vector that is clipped per party, as in DP-FedAvg (McMahan et al. 2018,
        arXiv:1710.06963); docs/sensitivity.md. No promise covers one record: it may turn its party's whole direction.

    Args:
        classes: number of classes C, 2 to 8,192; labels are 0..C-1.
        features: dimension d of the rows (after ``transform``), 2 to 65,536.
        clip_norm: what rows are shortened to. No bound rests on it; ``UnitNorm()`` in the transform suits most data.
        grid_bits: f; a direction is 2**f steps long. Between 2 and 20.
        nonnegative, transform, class_names, feature_names: as in :class:`ClassSchema`.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.PartySchema(2, 2)
        >>> one = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0]], [1, 0])
        >>> many = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0]] * 500, [1, 0] * 500)
        >>> one == many, one.real().P.round(2).tolist()  # a party of a thousand records weighs as much as one of two
        (True, [[-0.71, 0.0], [0.71, 0.0]])
    """

    task: ClassVar[str] = "party-softmax"  # another direction needs another word: parties of one plan send the same
    makes: ClassVar[str] = "a rule that tells the classes apart, to which each party gives one direction, as one vote"
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    predicts: ClassVar[Predicted | None] = "parties"
    whole_parties: ClassVar[bool] = True

    classes: int
    features: int = GIVEN
    clip_norm: float = 1.0
    _: KW_ONLY
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle_classes(self)
        settle(self, **checked_vectors(self))
        check_exact(self)

    @property
    def sizes(self) -> dict[str, int]:
        """Length of every axis."""
        return {"class": self.classes, "feature": self.features}

    @property
    def rows(self) -> ClassSchema:
        """How a party's records are read, before its direction is taken: on a finer grid."""
        return class_rows(self, self.classes)

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return self.rows.record

    @property
    def clipping(self) -> str:
        """The sentence that explains the bound on a party's weight."""
        return (
            f"Then one direction is computed from all records of the party, at length 1, and cut to steps of "
            f"{1 / self.steps:.2g}: every party weighs the same, so that no record weighs more than its party."
        )

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: 2**f, whatever the clip norm."""
        return by_letter(self.table, statistic)[0].scale(1.0, float(self.steps))

    def refusal(self, unit: str | None) -> str:
        """Why no promise covers one record: it may turn the direction of its whole party."""
        if unit != "record":
            return ""
        return (
            "one record may turn the whole direction of its party, so a PartySchema promises parties: give "
            'unit="client" with max_records_per_client=1, or measure a ClassSchema for one record'
        )


@dataclass(frozen=True)
class PartyUpdateSchema(PartySchema):
    """The second direction of each party: P, the sum of the updates ``V_k`` that parties make to published weights W.

    A party descends as under a :class:`PartySchema`, from W instead of zero, where ``W x / clip_norm`` are the scores
    of a row, and sends what the descent adds to W, at length 1. ``PartyRounds`` chooses W.

    Guarantee:
        That of :class:`PartySchema`, for *every* W: what is sent is shortened in the same whole numbers after the
        descent, wherever that began. No plan goes without DP: two exact sums at chosen weights tell more of a party
        than one.

    Args:
        as for :class:`PartySchema`.

    Raises:
        SchemaError: as there.

    Example:
        >>> schema = ps.PartyUpdateSchema.of(ps.PartySchema(2, 2))
        >>> schema.needs  # the published values that the measurement reads
        {'W': (2, 2)}
        >>> from privstats.schema.public_values import Published, Values
        >>> start = Published.of({"W": Values.rounded([[-8.0, 0.0], [8.0, 0.0]])})
        >>> X, y = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1, 0, 1]  # W tells the first two apart, and not the third
        >>> ps.measure(schema, X, y, published=start).real().P.round(1).tolist()
        [[0.0, -0.7], [0.0, 0.7]]
    """

    task: ClassVar[str] = "party-update"
    makes: ClassVar[str] = (
        "a step in which such a rule is improved, to which each party gives one direction, as one vote"
    )
    table: ClassVar[tuple[Statistic, ...]] = _UPDATE_TABLE
    predicts: ClassVar[Predicted | None] = None

    @classmethod
    def of(cls, schema: PartySchema) -> PartyUpdateSchema:
        """The same parties and bounds."""
        return cls(**{each.name: getattr(schema, each.name) for each in fields(schema)})

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """W ``(C, d)``."""
        return {"W": (self.classes, self.features)}

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse values of another shape, wider than 20 bits, tiny or enormous, before any record is read."""
        super().check_values(values)
        check_widths(values)

    def refusal(self, unit: str | None) -> str:
        """Why no promise covers one record, and none may be left out."""
        if unit is not None:
            return super().refusal(unit)
        return (
            "an update cannot be released without differential privacy: two exact sums at chosen weights tell more of "
            "a party than one; give the plan a Privacy"
        )
