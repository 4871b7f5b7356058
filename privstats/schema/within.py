"""The schema of a classification task in which each client has an offset of its own, taken out before anything is sent.

It defines the joint contribution of a client's records and its bounds; ``moments`` computes the sums.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from privstats.errors import SchemaError
from privstats.schema.base import Predicted, Schema, classes_of
from privstats.schema.checks import GIVEN, checked_class_names, checked_vectors, settle, size, whole
from privstats.schema.statistic import Statistic, letters_of
from privstats.transforms import Transform

__all__ = ["WithinSchema"]

_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "class", (), (0, 0), meaning="how many records each class has", share=0.02),
    Statistic(
        "L",
        "pooled",
        ("class", "class"),
        (0, 0),
        meaning="the counts of every two classes, less what each party's own mean explains",
        symmetric=True,
        share=0.05,
        divided=True,
    ),
    Statistic(
        "A",
        "class",
        ("feature",),
        (1, 0),
        meaning="for each class, the sum of its feature vectors, less what each party's own mean explains",
        share=0.8,
    ),
    Statistic(
        "B",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features, less what each party's own mean explains",
        symmetric=True,
    ),
)
"""Counts, and counts, sums and second moments less what each client's own offset explains, in wire order."""

_MOST_PULL = 1e9


@dataclass(frozen=True)
class WithinSchema(Schema):
    """Within-client moments of a classification task, for clients that are shifted: ``x = m_y + b_k + noise``.

    With ``z = (onehot(y), x)`` a client uploads ``Q = sum z z' - (sum z)(sum z)' / (n + lambda)`` in three blocks: L
    (C x C), A (C x d), B (d x d), and its counts N. Summed over the clients they give the class means of least squares
    with client effects, ``m = L^+ A``, and the scatter ``B - A' m``. One upload, no rounds.

    When (docs/alignment.md): clients of different domains, judged on their own label mix, or with mixes that are about
    the same. It needs the local offset at prediction (``heads.Personal(head, offset=True)``). Judged on the whole
    domain it loses where label mixes differ much. Under record-level DP it costs up to four times the sensitivity of B:
    plain N, A, B are the better choice there.

    Guarantee:
        Unit: one record, or a client of at most ``max_records_per_client``. The noise is calibrated to the largest move
        of ``(N, L, A, B)`` by a record of *any* client, above ``n_max`` or not, the cut to whole steps included
        (``dp.joint_mu``, docs/sensitivity.md); under replace-one mu^2 is up to four times that of add-remove.

    Args:
        classes: number of classes C, at least 2; labels are 0..C-1.
        features: dimension d of the vectors that are clipped (after ``transform``), at least 2.
        clip_norm: R, the Euclidean norm to which every vector is clipped.
        pull: lambda, 0 to 1e9, required: how many records hold a client's offset at zero. 0 frees it (client offsets
            then cancel bit for bit), a large one gives plain moments. The sums do not show which is best.
        n_max: required and public: a client of more records takes ``lambda n / n_max`` in place of lambda, so that its
            weight ``n / (n + lambda)`` stops there. Noise is calibrated to that weight. Nothing reveals whether a
            client is above it, and no client is refused for it.
        grid_bits, nonnegative, transform, class_names, feature_names: as in :class:`ClassSchema`.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.WithinSchema(2, 2, clip_norm=4.0, pull=0.0, n_max=100)
        >>> here = ps.measure(schema, [[0.0, 1.0], [1.0, 1.0]], [0, 1]).real()
        >>> shifted = ps.measure(schema, [[2.0, 1.0], [3.0, 1.0]], [0, 1]).real()
        >>> np.allclose(here.B, shifted.B, atol=1e-3)  # an offset of the whole client leaves no trace
        True
    """

    task: ClassVar[str] = "within"
    makes: ClassVar[str] = "a rule that tells the classes apart, less what the averages of one party alone explain"
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    predicts: ClassVar[Predicted | None] = "classes"

    classes: int
    features: int = GIVEN
    clip_norm: float = GIVEN
    _: KW_ONLY
    pull: float
    n_max: int
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, classes=whole("classes", self.classes, 2, "one class has nothing to tell apart: give two or more"))
        settle(self, **checked_vectors(self))
        settle(self, class_names=checked_class_names(self.class_names, self.classes))
        settle(self, n_max=whole("n_max", self.n_max, 1, "records of the largest client that counts in full"))
        settle(self, pull=_checked_pull(self.pull))

    @property
    def sizes(self) -> dict[str, int]:
        """Length of every axis and number of every kind of cell."""
        return {"class": self.classes, "feature": self.features}

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return f"{self.columns} and {classes_of(self.classes, self.class_names)}"

    @property
    def weight(self) -> float:
        """t = n_max / (n_max + lambda), the most that a client's offset is taken out; 1 for lambda = 0."""
        return self.n_max / (self.n_max + self.pull)


def _checked_pull(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0.0
    pull = size("pull", value, "0 frees every client's offset, 10 is a start")
    if pull > _MOST_PULL:
        raise SchemaError(f"pull must be at most {_MOST_PULL:g}, got {pull:g}: beyond, measure a ClassSchema")
    return pull
