"""Read and write files of releases, and check that the manifest follows from its plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.errors import PrivstatsError, ReleaseError
from privstats.files.decoding import from_json
from privstats.files.envelope import MOST_UNSTATED, Content, Format, PathLike, Version, full_content
from privstats.files.signing import Verifier
from privstats.files.text import json_value
from privstats.plan import Plan
from privstats.plan.position import Position
from privstats.printable import printable
from privstats.version import __version__

if TYPE_CHECKING:
    from privstats.release import Release

_SAME_DIGITS = 1e-10
_MAX_VERSION = 32


def content_of(release: Release) -> Content:
    """Return the content of a release's file."""
    manifest = _Manifest(
        privstats=__version__,
        plan=release.plan.at(None).to_toml(),
        plan_digest=release.plan.digest,
        survivors=release.survivors,
        suppressed=release.suppressed,
        sigma=dict(release.sigma),
        epsilon=json_value(release.budget.epsilon),
        delta=release.budget.delta,
        mu=json_value(release.budget.mu),
        reproducible=release.reproducible,
        left_for=release.left_for,
        run=release.run.hex(),
        position=None if release.position is None else _Position.of(release.position),
    )
    return Content(msgspec.json.encode(manifest, order="deterministic"), {"vector": release.vector})


class _Position(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    course: str
    step: str
    place: int
    spent: float | None
    mu: float | None

    @classmethod
    def of(cls, position: Position) -> _Position:
        spent, mu = json_value(position.spent), json_value(position.mu)
        return cls(course=position.course, step=position.phase, place=position.place, spent=spent, mu=mu)

    def read(self) -> Position:
        spent, mu = (math.inf if each is None else each for each in (self.spent, self.mu))
        return Position(self.course, self.step, self.place, spent, mu)


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sums' metadata. Plan, survivors and marks rebuild the release; the rest serves checks and readers.

    Fields with their default are omitted.
    """

    privstats: str
    plan: str
    plan_digest: str
    survivors: tuple[int, ...]
    suppressed: tuple[int, ...]
    sigma: dict[str, float]
    epsilon: float | None
    delta: float
    mu: float | None
    reproducible: bool = False
    left_for: tuple[int, ...] = ()
    run: str = ""
    position: _Position | None = None


_Stored: TypeAlias = tuple[_Manifest, NDArray[np.int64]]


def read(make: Callable[..., Release], path: PathLike, signed_by: Verifier | None) -> Release:
    """Read a release of the class ``make``, fully checked."""
    manifest, vector = FORMAT.read(path, signed_by)
    try:
        marks = manifest.suppressed, manifest.reproducible, manifest.left_for, bytes.fromhex(manifest.run)
        position = None if manifest.position is None else manifest.position.read()
        release = make(_plan(manifest), vector, manifest.survivors, *marks, position, manifest.privstats)
    except (PrivstatsError, ValueError) as error:
        raise _not_together(path, error) from None
    _check_claims(manifest, release, path)
    _check_sums(release, path)
    return release


def _plan(manifest: _Manifest) -> Plan:
    """Return the plan; of a release from before plans named packages, with the digest of then."""
    plan = Plan.from_toml(manifest.plan)
    older = plan.unnamed
    return older if older.digest == manifest.plan_digest else plan


def _most(manifest: bytes) -> int:
    """Return the bytes of the sums of the manifest's plan."""
    try:
        return Plan.from_toml(from_json(manifest, _Manifest).plan).layout.size * np.dtype(np.int64).itemsize
    except (msgspec.DecodeError, PrivstatsError):
        return MOST_UNSTATED


def _read(content: Content, path: PathLike) -> _Stored:
    vector = content.tensors.get("vector")
    if len(content.tensors) != 1 or vector is None or vector.dtype != np.int64 or vector.ndim != 1:
        raise ReleaseError(
            f"{path} does not hold the one int64 vector of a release; give a file written by Release.save"
        )
    try:
        return from_json(content.manifest, _Manifest), vector
    except msgspec.DecodeError as error:
        raise _not_together(path, error) from None


def _not_together(path: PathLike, error: Exception) -> ReleaseError:
    return ReleaseError(f"{path} carries a manifest that does not hold together: {error}")


def _check_claims(manifest: _Manifest, release: Release, path: PathLike) -> None:
    """Verify that the manifest follows from its plan, to the digits in which all machines agree."""
    plan, budget = release.plan, release.budget
    claims = (manifest.plan_digest, manifest.epsilon, manifest.delta)
    claimed = claims == (plan.digest, json_value(budget.epsilon), budget.delta)
    if not claimed or not _alike({"mu": manifest.mu}, {"mu": json_value(budget.mu)}):
        raise _not_of_its_plan(path, "a digest or a budget", manifest)
    if release.position is not None and not release.position.covers(budget.mu):
        raise _not_of_its_plan(path, "a position", manifest)
    classes = plan.layout.segments[0].size if plan.schema.suppressible else 0
    rising = release.suppressed == tuple(sorted(set(release.suppressed) & set(range(classes))))
    if not rising or not _alike(manifest.sigma, release.sigma):
        raise _not_of_its_plan(path, "classes or noise", manifest)


def _not_of_its_plan(path: PathLike, what: str, manifest: _Manifest) -> ReleaseError:
    """Name the version that wrote a file: another one may charge the same plan with other noise."""
    remedy = "do not trust it"
    if manifest.privstats != __version__:
        remedy = f"read it with version {printable(manifest.privstats)[:_MAX_VERSION]}, which says it wrote the file"
    return ReleaseError(f"{path} claims {what} that its own plan does not give in version {__version__}: {remedy}")


def _check_sums(release: Release, path: PathLike) -> None:
    """Refuse sums that do not fit the ring of their plan, and sums of suppressed classes."""
    layout, dropped = release.plan.layout, list(release.suppressed)
    for room, entries in zip(release.plan.headroom, layout.slices, strict=True):
        sums, limit = release.vector[entries], 1 << (room.bits - 1)
        if not -limit <= int(sums.min()) <= int(sums.max()) < limit:
            raise ReleaseError(
                f"{path} holds sums of {room.segment.name} that need more than the {room.bits} bits of its plan; do "
                "not trust it"
            )
        if dropped and not room.segment.pooled and sums.reshape(layout.segments[0].size, -1)[dropped].any():
            raise ReleaseError(f"{path} holds sums of a class that it calls suppressed; do not trust it")


def _alike(claimed: Mapping[str, float | None], follows: Mapping[str, float | None]) -> bool:
    """Compare without the last digits, which differ between versions of root finders."""
    return claimed.keys() == follows.keys() and all(_close(value, follows[name]) for name, value in claimed.items())


def _close(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=_SAME_DIGITS))


FORMAT = Format(
    name=domains.RELEASE_FILE,
    noun="release",
    writer="Release.save",
    error=ReleaseError,
    readers={3: Version(_read, full_content(domains.RELEASE_FILE_3), _most)},
)
"""Files of releases; version 2 did not name the course, and what version 1 sealed had no label and no lengths."""
