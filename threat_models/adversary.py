"""Adversaries: what an attacker sees and knows, as a frozen value, and the only access of attacks to data.

``Adversary.view`` copies from a world exactly what the declaration allows, and a view holds no reference back. The
world owns the truth; the attack gets the view.

Attacks get a view, never a world. A view holds read-only copies of what its adversary declares, and an attack draws
from a generator of its own, so no attack can win by reading or replaying the truth. Members and strangers are
compared across independent worlds: inside one world the question is which of two records is in, and that has another
ceiling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import to_real
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.release import Release

if TYPE_CHECKING:
    from threat_models.world import Session, World

Sees: TypeAlias = Literal["release", "releases", "cohort", "transcript", "heads"]
Knows: TypeAlias = Literal["none", "public", "all-but-one"]
Cohorts: TypeAlias = Literal["same", "without-target", "random"]
Constraint: TypeAlias = Literal["non-negative", "grid", "norm"]
Sums: TypeAlias = Mapping[str, NDArray[np.float64]]

SIGHTS: Mapping[Sees, str] = MappingProxyType(
    {
        "release": "the published release",
        "releases": "several releases of the same records",
        "cohort": "the unmasked sums of one small cohort",
        "transcript": "the server's transcript, with colluding clients",
        "heads": "the published models only",
    }
)
"""The adversary's sight, in words."""

_KNOWLEDGE: Mapping[Knows, str] = MappingProxyType(
    {
        "none": "knows no records",
        "public": "knows a public sample of the same kind of records",
        "all-but-one": "knows every record but the target",
    }
)


BARE: Mapping[str, tuple[Sees, ...]] = MappingProxyType(
    {"server": ("cohort", "transcript"), "member": ("cohort",), "client": ()}
)
"""The sights that are free of noise, by the party that draws it."""

_CONSTRAINTS: Mapping[Constraint, str] = MappingProxyType(
    {"non-negative": "nowhere negative", "grid": "on the grid", "norm": "of bounded norm"}
)


@dataclass(frozen=True, eq=False)
class View:
    """Everything an attack is given: copies, read-only, with no way back to the world they came from.

    Only the public sample is not copied: it has its own memory and is public.

    Vectors are records behind the public transform, the clip and the grid, in real units, as they enter the sums.

    Attributes:
        plan: the plan; it is public.
        sums: per session seen, each statistic in real units under its letter; of a model, its class "means".
        sigma: per statistic, the noise in one such sum that this adversary cannot take off; 0.0 without noise.
        cohorts: per session seen, the clients that are in it.
        survivors: clients in a sum whose noise is unknown to the adversary.
        candidates: vectors whose membership is in question, ``(m, d)``; empty when the goal is another.
        labels: their labels or targets, ``(m,)``; in other games the one label that is attacked.
        rivals: the vectors that stand in for the candidates when they are absent (replace-one), else None.
        rival_labels: their labels or targets.
        background: exact sums of every record but the target; None unless the adversary knows them.
        public: a public sample ``(X, y)`` of the same population; None unless known.
        public_raw: its records before transform and clip; None without the encoder.
        records: records of the attacked class, from a public or the noisy count; at least 1.
    """

    plan: Plan
    sums: tuple[Sums, ...]
    sigma: Mapping[str, float]
    cohorts: tuple[tuple[int, ...], ...]
    survivors: int
    candidates: NDArray[np.float64]
    labels: NDArray[Any]
    rivals: NDArray[np.float64] | None
    rival_labels: NDArray[Any] | None
    background: Sums | None
    public: tuple[NDArray[np.float64], NDArray[Any]] | None
    public_raw: NDArray[Any] | None
    records: int

    def instead(self, sums: tuple[Sums, ...]) -> View:
        """Return the view with an independent world's sums instead of the release: the attacker's baseline."""
        return replace(self, sums=sums)


@dataclass(frozen=True)
class Adversary:
    """A declared attacker.

    Args:
        sees: what reaches it, see :data:`SIGHTS`.
        statistics: the letters it looks at; empty for all that are sent.
        knows: what it knows about the records before anything is released.
        colluders: clients that share everything with the attacker, their noise included.
        active: whether it deviates from the protocol; an inactive one only reads.
        encoder: whether it can run the encoder that made the features.
        constraints: what it may assume of a record: "non-negative", "grid", "norm".
        releases: sessions it sees of the same records.
        cohorts: the clients of those sessions: all each time, all and then all but the target's client, or random
            survivors.
        unit: what it attacks, a "record" or a "client".

    Raises:
        PlanError: fewer than one release, several without seeing "releases", or fewer than no colluders.
    """

    sees: Sees = "release"
    statistics: str = ""
    knows: Knows = "public"
    colluders: int = 0
    active: bool = False
    encoder: bool = False
    constraints: tuple[Constraint, ...] = ()
    releases: int = 1
    cohorts: Cohorts = "same"
    unit: Literal["record", "client"] = "record"

    def __post_init__(self) -> None:
        if self.sees not in SIGHTS:
            raise PlanError(f"an adversary sees one of {', '.join(SIGHTS)}, got {self.sees!r}")
        if self.colluders < 0:
            raise PlanError(f"an adversary's colluders must be at least 0, got {self.colluders}")
        if self.releases < 1 or (self.releases > 1) != (self.sees == "releases"):
            raise PlanError(
                f"an adversary that sees {self.sees!r} has releases={self.releases}; "
                "it is 1, or at least 2 when it sees 'releases'"
            )

    def view(self, world: World) -> View:
        """This adversary's view of a world: the only way in which data reaches an attack."""
        survivors = world.survivors_unknown(self.sees, self.colluders)
        informed = self.knows == "all-but-one" and world.background is not None
        return View(
            plan=world.plan,
            sums=tuple(self._seen(world, session) for session in world.sessions),
            sigma=_noise(world.plan, self.sees, survivors),
            cohorts=tuple(tuple(session.survivors) for session in world.sessions),
            survivors=survivors,
            candidates=_copy(world.candidates),
            labels=_copy(world.labels),
            rivals=None if world.rivals is None else _copy(world.rivals),
            rival_labels=None if world.rival_labels is None else _copy(world.rival_labels),
            background=self._sums(world.plan, world.background) if informed else None,  # type: ignore[arg-type]
            public=None if self.knows == "none" else world.public,
            public_raw=world.public_raw if self.encoder and self.knows != "none" else None,
            records=int(world.records),
        )

    def describe(self) -> str:
        """The declaration as one plain phrase."""
        parts = [f"sees {SIGHTS[self.sees]}", _KNOWLEDGE[self.knows]]
        if self.releases > 1:
            parts[0] += f" ({self.releases})"
        if self.colluders:
            parts.append(f"has {self.colluders} colluding client{'s' if self.colluders > 1 else ''}")
        if self.active:
            parts.append("deviates from the protocol")
        if self.encoder:
            parts.append("has the encoder")
        if self.constraints:
            parts.append("knows that vectors are " + " and ".join(_CONSTRAINTS[name] for name in self.constraints))
        if self.statistics:
            parts.append(f"looks at {self.statistics}")
        if self.unit == "client":
            parts.append("asks about a whole client")
        return "; ".join(parts)

    def _seen(self, world: World, session: Session) -> Sums:
        if self.sees == "heads":
            return _published(session.release)
        return self._sums(world.plan, world.observed(session, self.sees, self.colluders))

    def _sums(self, plan: Plan, vector: NDArray[np.int64]) -> Sums:
        real = to_real(plan.schema, vector)
        held = [s for s in plan.schema.statistics + plan.schema.derived if getattr(real, s, None) is not None]
        chosen = [s for s in held if not self.statistics or s in self.statistics]
        return MappingProxyType({s: _copy(np.asarray(getattr(real, s), np.float64)) for s in chosen})


def _noise(plan: Plan, sees: Sees, survivors: int) -> Mapping[str, float]:
    """Unknown noise per statistic: an unmasked cohort carries one share, central noise comes after unmasking, and the
    leader of a panel lacks one member's."""
    noise = plan.noise
    if noise is None or sees in BARE[noise.trust.drawn_by]:
        return MappingProxyType(dict.fromkeys(plan.schema.statistics + plan.schema.derived, 0.0))
    one_member = noise.trust.drawn_by == "member" and sees == "transcript"
    sigma = dict(noise.sigma if one_member else noise.released_sigma(survivors))
    if "S" in sigma:
        sigma["D"] = sigma["S"]
        sigma["B"] = sigma["S"] * float(np.sqrt(plan.schema.sizes["class"]))
    return MappingProxyType(sigma)


def published_heads(statistics: str) -> tuple[str, ...]:
    """Return the heads in closed form of these statistics. All of one release store the same class means."""
    from privstats.heads import registry

    return tuple(name for name in registry.able(statistics) if registry.HEADS[name].closed_form)


def _published(release: Release) -> Sums:
    """Return the class means that a head of this release stores, under the key "means"."""
    from privstats.heads import registry

    names = published_heads(release.plan.schema.statistics)
    if not names:
        raise PlanError("no registered head in closed form is built from this release: add B, S or D to statistics")
    return MappingProxyType({"means": _copy(registry.head_class(names[0])().fit_release(release).prototypes_)})


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    """Fresh memory: a view of a truth would lead back to it through ``base``."""
    out: NDArray[Any] = np.array(array, copy=True)
    out.setflags(write=False)
    return out
