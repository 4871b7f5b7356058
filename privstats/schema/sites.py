"""The schema of a regression over sites that differ in level: each site's own mean is removed first.

It defines the joint contribution of a site's records and its bounds; ``moments`` computes the sums.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import ClassVar

from privstats.errors import SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import GIVEN, checked_vectors, settle, size, whole
from privstats.schema.statistic import Statistic, letters_of
from privstats.transforms import ConstantFeature, Transform

__all__ = ["FEWEST_GROUPS", "SitesSchema", "checked_groups"]

_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.02),
    Statistic(
        "Q",
        "pull",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two columns, less what each site's own mean explains",
        symmetric=True,
    ),
)
"""Records, and second moments less what each site's own shrunk mean explains, per group and pull, in wire order."""

FEWEST_GROUPS = 6
"""With fewer groups the quantiles of their few degrees of freedom are too wide to be of use."""

_MOST_GROUPS = 64
_MOST_PULLS = 4
_LARGEST_PULL = 1e9


@dataclass(frozen=True)
class SitesSchema(Schema):
    """Second moments within sites, of columns and target together, for ``inference.fixed_effects`` and ``mixed``.

    A site is a client; two sites in one client are measured as one. With ``z = (x, y)`` clipped to one norm R, a site
    of n records with sums s uploads n and, for every pull lambda, ``Q = sum z z' - s s' / (n + lambda)``, 0 for n = 0.
    Summed over the sites with lambda = 0 that is the regression with a dummy for every site. One upload, no rounds.

    Intervals are too short if slopes differ by site; use ``groups`` then.

    Guarantee:
        Unit: one record, or a client of at most ``max_records_per_client``. The noise is calibrated to the largest move
        of ``(N, Q)`` by a record of a site of any size: 4 R^2 per pull under add-remove, sqrt 2 times that under
        replace-one, the cut to whole steps included (``dp.joint_mu``, docs/sensitivity.md). Without DP the exact sums
        over few sites reveal the sites: a plan with too few for its pulls is refused, by a counting rule and no proof.

    Args:
        features: columns behind the transform *and* the target, at least 2.
        clip_norm: R, the Euclidean norm to which every vector ``(x, y / target_scale)`` is clipped.
        pulls: lambda, how many records hold a site's mean at zero: ``(0,)`` for fixed effects; two to four increasing
            numbers from above 0 to 1e9 for a random intercept, only without DP.
        groups: F; a site's sums go to the group of its place in the roster modulo F, which gives errors that hold
            where slopes differ by site. 1, or 6 to 64; with one pull.
        target_scale: the target is divided by this public number before the clip.
        transform: public maps applied to the columns and not to the target. With a pull of 0 no ``ConstantFeature``:
            it would be taken out with the site's mean.
        feature_names: names of the columns that come in, the target not among them, as in :class:`ClassSchema`.
        grid_bits: f; vectors of norm R are 2**f grid steps long.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.SitesSchema(2, clip_norm=16.0)
        >>> moments = ps.measure(schema, [[0.0], [1.0], [2.0]], [5.0, 7.0, 9.0]).real()
        >>> moments.N, moments.Q[0].round(1).tolist()  # squares and products about this site's means
        (3.0, [[2.0, 4.0], [4.0, 8.0]])
    """

    task: ClassVar[str] = "sites"
    makes: ClassVar[str] = "a regression that compares records within a party, and never one party with another"
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    appended: ClassVar[int] = 1
    nonnegative: ClassVar[bool] = False

    features: int = GIVEN
    clip_norm: float = GIVEN
    _: KW_ONLY
    pulls: tuple[float, ...] = (0.0,)
    groups: int = 1
    target_scale: float = 1.0
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None
    grid_bits: int = 12

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))
        settle(self, pulls=_checked_pulls(self.pulls), groups=checked_groups(self.groups))
        settle(self, target_scale=size("target_scale", self.target_scale, "1 leaves the target as it is"))
        if self.groups > 1 and len(self.pulls) > 1:
            raise SchemaError("groups and several pulls do not go together: each group would need a crowd of its own")
        if self.pulls[0] == 0 and any(isinstance(step, ConstantFeature) for step in self.transform):
            raise SchemaError(
                "transform must not hold a ConstantFeature with a pull of 0: a site's mean takes it out; leave it away"
            )

    @property
    def site_groups(self) -> int:
        """The groups of the plan."""
        return self.groups

    @property
    def sizes(self) -> dict[str, int]:
        """Length of the one axis, and the number of blocks of Q: one per pull, or one per group."""
        return {"feature": self.features, "pull": self.groups * len(self.pulls)}

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return f"{self.columns} and a target"

    def refusal(self, unit: str | None) -> str:
        """Why a promise admits one pull only."""
        if unit is None or len(self.pulls) == 1:
            return ""
        return (
            f"under a promise per {unit} several pulls leave sums that noise makes unreadable: give pulls=(0,), read "
            "inference.fixed_effects, or give NoPrivacy()"
        )


def _checked_pulls(values: object) -> tuple[float, ...]:
    if not isinstance(values, tuple | list) or not 1 <= len(values) <= _MOST_PULLS:
        raise SchemaError(f"pulls must be a tuple of 1 to {_MOST_PULLS} numbers; (0,) is for fixed effects")
    pulls = tuple(_checked_pull(value) for value in values)
    if any(low >= high for low, high in pairwise(pulls)):
        raise SchemaError("pulls must increase; sort them and name each once")
    if len(pulls) > 1 and pulls[0] == 0:
        raise SchemaError("a pull of 0 stands alone: give (0,) for fixed effects, or pulls above 0 for inference.mixed")
    return pulls


def _checked_pull(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0.0
    pull = size("a pull", value, "0 frees a site's mean, .4 to 400 are for inference.mixed")
    if pull > _LARGEST_PULL:
        raise SchemaError(f"a pull must be at most {_LARGEST_PULL:g}, got {pull:g}: beyond, measure a RidgeSchema")
    return pull


def checked_groups(value: object) -> int:
    """Groups of sites: 1, or a number of them that leaves a spread degrees of freedom.

    Raises:
        SchemaError: another number.
    """
    groups = whole("groups", value, 1, "1 means no groups")
    if groups != 1 and not FEWEST_GROUPS <= groups <= _MOST_GROUPS:
        raise SchemaError(f"groups must be 1, or {FEWEST_GROUPS} to {_MOST_GROUPS}, got {groups}: 8 suits most cohorts")
    return groups
