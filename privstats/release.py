"""Define the release: the noisy integer sums of an aggregation, with their plan, survivors and noise.

Real units, noise scales and the budget are derived from the plan inside it. Loading checks that they agree, so a
manifest cannot claim less noise than its plan.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.dp import NoPrivacy
from privstats.encoding import flatten, to_real
from privstats.errors import ReleaseError
from privstats.files.packing import little_endian
from privstats.moments import Moments
from privstats.plan import Cohort, Plan
from privstats.plan.position import Position
from privstats.printable import at_most, delta_text, html_facts, html_table
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.files.envelope import PathLike
    from privstats.files.signing import Signer, Verifier
    from privstats.plan import Budget

__all__ = ["Position", "Release", "require_survivors"]

_DIGEST = re.compile("[0-9a-fA-F]{64}")
_MAX_RUN_BYTES = 64


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy sums over the survivors, ready for a head.

    Attributes:
        vector: int64 of shape ``(plan.layout.size,)``, noisy sums in wire steps; suppressed classes are zero.
        suppressed: classes with a noisy count below ``plan.min_count``.
        reproducible: others may know the noise, so there is no privacy: never to be published.
        left_for: where excess noise is removed, the number of clients that each survivor's remaining noise is sized
            for, in the survivors' order.
        run: name of the session that made it, where its survivors are proof about that session; else empty.
        position: the course, step and place of the session that made it, by default those that the plan names; None for
            a plan alone and for a stream.
        written_by: the version of privstats that wrote the file; empty for a release that was not read from a file. It
            is in no digest and no comparison.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> release = ps.Release.exact(schema, ps.measure(schema, [[0.5, 0.0], [0.25, 0.0]], [0, 1]))
        >>> release.moments.A.tolist(), release.sigma["A"]
        ([[0.5, 0.0], [0.25, 0.0]], 0.0)
        >>> release.save("study.release")
        >>> ps.Release.load("study.release").plan == release.plan
        True
    """

    plan: Plan
    vector: NDArray[np.int64]
    survivors: tuple[int, ...]
    suppressed: tuple[int, ...] = ()
    reproducible: bool = False
    left_for: tuple[int, ...] = ()
    run: bytes = b""
    position: Position | None = None
    written_by: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        held = isinstance(self.vector, np.ndarray) and self.vector.dtype == np.int64
        if not held or self.vector.shape != (self.plan.layout.size,):
            raise ReleaseError(f"a release under this plan holds int64 of shape ({self.plan.layout.size},)")
        require_survivors(self.plan, self.survivors)
        object.__setattr__(self, "survivors", tuple(self.survivors))
        _require_levels(self.plan, len(self.survivors), self.left_for)
        if not isinstance(self.run, bytes) or len(self.run) > _MAX_RUN_BYTES:
            raise ReleaseError(f"run must be at most {_MAX_RUN_BYTES} bytes: give the run of the session's roster")
        if not isinstance(self.position, Position | None):
            raise ReleaseError(f"position must be a Position or None, got {type(self.position).__name__}; leave it out")
        # Plan and release name one session: the plan's, if no other is given.
        position = self.position or self.plan.position
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "plan", self.plan.at(position))
        frozen = self.vector.copy()
        frozen.setflags(write=False)
        object.__setattr__(self, "vector", frozen)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        facts = ("plan", "survivors", "suppressed", "reproducible", "left_for", "run", "position")
        same = all(getattr(self, name) == getattr(other, name) for name in facts)
        return same and np.array_equal(self.vector, other.vector)

    @classmethod
    def exact(cls, schema: Schema, moments: Moments) -> Release:
        """Turn exact moments into a release without noise.

        For public data, or a party's own: nothing protects these sums, and the two clients of its plan are fictitious.
        """
        if moments.schema != schema:
            raise ReleaseError("the moments were measured under another schema; measure with the one you give here")
        if not moments.records:
            raise ReleaseError("there is no record in these moments, or they do not know how many; measure some first")
        plan = Plan(schema=schema, cohort=Cohort(2, 2, moments.records), privacy=NoPrivacy())
        return cls(plan, flatten(moments), (0, 1))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        mark = ", REPRODUCIBLE NOISE" if self.reproducible else ""
        return (
            f"Release(statistics={self.plan.schema.statistics!r}, survivors={len(self.survivors)}, "
            f"suppressed={self.suppressed}, epsilon={at_most(self.budget.epsilon)}, "
            f"while={self.plan.condition!r}{mark})"
        )

    def _repr_html_(self) -> str:
        budget = self.budget
        facts = [
            ("digest", self.digest),
            ("plan", self.plan.digest),
            ("parties in it", f"{len(self.survivors)} of {self.plan.cohort.clients}"),
            ("classes left out", ", ".join(map(str, self.suppressed)) or "none"),
            ("session", str(self.position or "of a plan alone")),
            ("promise", budget.promise),
            (
                "epsilon, delta of this release alone",
                f"{at_most(budget.epsilon, '.6g')}, {delta_text(budget.delta)}",
            ),
        ]
        if budget.masking_failure:
            facts.append(("part of delta for a failure of the masking", at_most(budget.masking_failure, ".2g")))
        if self.reproducible:
            facts.append(("noise", "REPRODUCIBLE: it came from a generator that others may know"))
        noise = [(statistic, f"{sigma:.4g}") for statistic, sigma in self.sigma.items()]
        return html_facts("release", facts) + html_table(("statistic", "noise, standard deviation"), noise)

    @cached_property
    def moments(self) -> Any:
        """The noisy sums in real units, float64."""
        return to_real(self.plan.schema, self.vector)

    @cached_property
    def sigma(self) -> Mapping[str, float]:
        """Standard deviation, in real units, of the noise in each statistic's sum; 0.0 without DP.

        Distributed and local noise grow with the survivors, unless removed. A symmetric block has this standard
        deviation on its diagonal and 1/sqrt 2 of it elsewhere. A class with merged classes carries the noise of each
        (``dp.noise_copies``); this is the level of one.
        """
        noise = self.plan.noise
        if noise is None:
            return dict.fromkeys(self.plan.schema.statistics, 0.0)
        return noise.sigma_at_levels(self.left_for) if noise.levels else noise.released_sigma(len(self.survivors))

    @cached_property
    def budget(self) -> Budget:
        """The promised budget."""
        return self.plan.budget()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan and all other fields, in 64 hex digits.

        The digest alone reveals no sum; it confirms a guess of the whole release.
        """
        marks = (self.survivors, self.suppressed, self.reproducible, self.left_for, self.run)
        position = None if self.position is None else self.position.named
        facts = (self.plan.digest, little_endian(self.vector), *marks, position)
        return hashlib.sha256(domains.RELEASE + msgspec.msgpack.encode(facts)).hexdigest()

    def at(self, position: Position | None) -> Release:
        """Return this release as that of a course's session; None leaves it as it is.

        Raises:
            ReleaseError: it is of another session.

        Example:
            >>> plan = ps.Plan(
            ...     schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy()
            ... )
            >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
            >>> release.at(ps.release.Position("c0" * 32, "round", place=1, spent=0.4, mu=0.5)).position.place
            1
        """
        if position is None or self.position == position:
            return self
        if self.position is not None:
            raise ReleaseError(f"this release is of {self.position}, and not of {position}; give that session's own")
        return replace(self, position=position)

    def save(self, path: PathLike, signer: Signer | None = None) -> None:
        """Write the complete release: safetensors with the manifest in its header.

        Args:
            signer: an ``Identity``, an Ed25519 private key, or its 32 bytes; signs the manifest and the sums under a
                label of their own, so that :meth:`load` detects a forgery and no other signature of the key fits.
        """
        from privstats.release_file import FORMAT, content_of

        FORMAT.write(path, content_of(self), signer)

    @classmethod
    def load(cls, path: PathLike, signed_by: Verifier | None = None, *, plan: Plan | str | None = None) -> Release:
        """Read a release and check everything that can be checked.

        The checksum catches corruption and careless edits; only a signature stops a forger. A signature identifies who
        made the file, and ``plan`` which of their releases it is.

        Args:
            signed_by: the required signer's public key, in any form that ``signing`` reads.
            plan: the required plan, or its digest in hex.

        Raises:
            ReleaseError: not a release, corrupt, from another version, inconsistent with its plan, wrongly signed, or
                under another plan.
        """
        from privstats.release_file import read

        wanted = None if plan is None else _digest_of(plan)
        release = read(cls, path, signed_by)
        if wanted is not None and release.plan.digest != wanted:
            raise ReleaseError(
                f"{path} was made under another plan, {release.plan.digest}, and not under {wanted}: give the file of "
                "the release that you expect, or its plan"
            )
        return release


def _digest_of(plan: Plan | str) -> str:
    if isinstance(plan, Plan):
        return plan.digest
    if not isinstance(plan, str) or not _DIGEST.fullmatch(plan):
        got = "another text" if isinstance(plan, str) else type(plan).__name__
        raise ReleaseError(f"plan must be a Plan or its digest, 64 hexadecimal digits, got {got}; give plan.digest")
    return plan.lower()


def _require_levels(plan: Plan, survivors: int, left_for: tuple[int, ...]) -> None:
    levels = () if plan.noise is None else plan.noise.levels
    known = isinstance(left_for, tuple) and all(type(level) is int and level in levels for level in left_for)
    if not known or len(left_for) != (survivors if levels else 0) or max(left_for, default=0) > survivors:
        raise ReleaseError(
            "left_for must have one of the plan's levels of noise for each survivor, none above their number, where "
            "the plan removes excess noise, and be empty elsewhere"
        )


def require_survivors(plan: Plan, survivors: tuple[int, ...]) -> None:
    """Refuse a release with fewer survivors than the plan's minimum, on which its promise depends.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(4, 3, 100), privacy=ps.NoPrivacy())
        >>> ps.release.require_survivors(plan, (0, 2))
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: survivors must be at least 3 different clients of 0..3; with fewer the plan's
        promise does not hold
    """
    if not isinstance(survivors, tuple | list):
        raise ReleaseError(f"survivors must be a tuple of client numbers, got {type(survivors).__name__}; give (0, 1)")
    known = all(0 <= index < plan.cohort.clients for index in survivors)
    minimum = plan.masking.min_listed
    if not known or len(set(survivors)) != len(survivors) or len(survivors) < minimum:
        raise ReleaseError(
            f"survivors must be at least {minimum} different clients of "
            f"0..{plan.cohort.clients - 1}; with fewer the plan's promise does not hold"
        )
