"""The artefact: what leaves the aggregation, with everything a head or an auditor must know about it.

A release holds the noisy integer sums, the plan they were made under, who survived and how much noise is in them. It is
immutable; its file is safetensors with a JSON manifest. It is not a model: heads are built from it.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from privstats.dp import NoPrivacy
from privstats.encoding import flatten, to_real
from privstats.errors import PrivstatsError, ReleaseError
from privstats.files import read_whole, safetensors_metadata, write_whole
from privstats.moments import ClassMoments, RealClassMoments, RealRidgeMoments, RidgeMoments
from privstats.plan import Budget, Cohort, Plan
from privstats.schema import Schema
from privstats.version import __version__

__all__ = ["FORMAT_VERSION", "Release", "check_survivors"]

FORMAT_VERSION = 1
_FORMAT = "privstats-release"
_KEY_BYTES = 32


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy sums over the survivors, ready for a head.

    Attributes:
        plan: the plan the sums were made under.
        vector: int64 of shape ``(plan.layout.size,)``, the noisy sums in grid steps; suppressed classes are zero.
        survivors: indices of the clients whose records are in the sums.
        suppressed: classes whose noisy count fell below ``plan.min_count``.
        reproducible: its noise came from a generator that others may know, so it protects nobody: a test or a
            simulation, never to be given away.
    """

    plan: Plan
    vector: NDArray[np.int64]
    survivors: tuple[int, ...]
    suppressed: tuple[int, ...] = ()
    reproducible: bool = False

    def __post_init__(self) -> None:
        held = isinstance(self.vector, np.ndarray) and self.vector.dtype == np.int64
        if not held or self.vector.shape != (self.plan.layout.size,):
            raise ReleaseError(f"a release under this plan holds int64 of shape ({self.plan.layout.size},)")
        check_survivors(self.plan, self.survivors)
        object.__setattr__(self, "survivors", tuple(self.survivors))
        frozen = self.vector.copy()
        frozen.setflags(write=False)
        object.__setattr__(self, "vector", frozen)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        facts = ("plan", "survivors", "suppressed", "reproducible")
        same = all(getattr(self, name) == getattr(other, name) for name in facts)
        return same and np.array_equal(self.vector, other.vector)

    @classmethod
    def exact(cls, schema: Schema, moments: ClassMoments | RidgeMoments) -> Release:
        """Exact moments as a release without noise, so that heads read them as they read any other.

        For public data, or a party's own: nothing here is private, and the two clients of its plan are made up.

        Args:
            schema: what was measured.
            moments: what ``measure`` gave.

        Raises:
            ReleaseError: moments of another schema, or without a single record.
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
            f"suppressed={self.suppressed}, epsilon={self.budget.epsilon:.4g}{mark})"
        )

    @cached_property
    def moments(self) -> RealClassMoments | RealRidgeMoments:
        """The noisy sums in real units, float64."""
        return to_real(self.plan.schema, self.vector)

    @cached_property
    def sigma(self) -> Mapping[str, float]:
        """Standard deviation, in real units, of the noise that is in each statistic's sum; 0.0 without DP.

        Distributed and local noise grow with the survivors: each brings a share. A symmetric block has this standard
        deviation on its diagonal and 1/sqrt 2 of it elsewhere. A class that took merged classes in carries the noise
        of each (``dp.noise_copies``); this is the level of one.
        """
        noise = self.plan.noise
        if noise is None:
            return dict.fromkeys(self.plan.schema.statistics, 0.0)
        return noise.released_sigma(len(self.survivors))

    @cached_property
    def budget(self) -> Budget:
        """The budget that was promised."""
        return self.plan.budget()

    def save(self, path: str | os.PathLike[str], signer: Ed25519PrivateKey | bytes | None = None) -> None:
        """Write the release whole: safetensors with the manifest in its header.

        Args:
            path: where to; an existing file is replaced atomically.
            signer: an Ed25519 private key, or its 32 bytes; signs the manifest and the sums, so that
                ``load(path, signed_by=...)`` can tell a forgery.

        Raises:
            ReleaseError: the signer is no key.
            PrivstatsError: the file cannot be written.
        """
        key = None if signer is None else _signing_key(signer)
        manifest = msgspec.json.encode(self._manifest(), order="deterministic")
        sealed = manifest + self._tensor_bytes()
        header = {
            "format": _FORMAT,
            "version": str(FORMAT_VERSION),
            "manifest": manifest.decode(),
            "sha256": hashlib.sha256(sealed).hexdigest(),
        }
        if key is not None:
            header["ed25519"] = key.sign(sealed).hex()
        write_whole(path, save_tensors({"vector": self.vector}, metadata=header))

    @classmethod
    def load(cls, path: str | os.PathLike[str], signed_by: Ed25519PublicKey | bytes | None = None) -> Release:
        """Read a release and check everything that can be checked.

        Without ``signed_by`` the checksum catches corruption and careless edits; only a signature stops a forger.

        Args:
            path: a file that :meth:`save` wrote.
            signed_by: the Ed25519 public key that must have signed it, or its 32 bytes.

        Raises:
            ReleaseError: not a release, corrupt, from another version, inconsistent with its plan, or wrongly signed;
                or ``signed_by`` is no key.
        """
        key = None if signed_by is None else _verifying_key(signed_by)
        data = read_whole(path, ReleaseError, "Release.save")
        header = _header(data, path)
        manifest, vector = header["manifest"].encode(), _tensor(data, path)
        sealed = manifest + vector.astype("<i8", copy=False).tobytes()
        if not hmac.compare_digest(header["sha256"], hashlib.sha256(sealed).hexdigest()):
            raise ReleaseError(f"{path} does not match its own checksum: it was damaged or edited; fetch it again")
        if key is not None:
            _verify(header.get("ed25519", ""), sealed, key, path)
        return _rebuild(manifest, vector, path)

    def _manifest(self) -> _Manifest:
        return _Manifest(
            privstats=__version__,
            plan=self.plan.to_toml(),
            plan_digest=self.plan.digest,
            survivors=self.survivors,
            suppressed=self.suppressed,
            sigma=dict(self.sigma),
            epsilon=_finite(self.budget.epsilon),
            delta=self.budget.delta,
            mu=_finite(self.budget.mu),
            reproducible=self.reproducible,
        )

    def _tensor_bytes(self) -> bytes:
        return self.vector.astype("<i8", copy=False).tobytes()


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the header says about the sums; everything but the plan is there to be read and to be checked.

    ``reproducible`` stands there only where it is true, so files from before it are read and written as they were.
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


def _header(data: bytes, path: str | os.PathLike[str]) -> dict[str, str]:
    header = safetensors_metadata(data)
    if header.get("format") != _FORMAT or not {"version", "manifest", "sha256"} <= set(header):
        raise ReleaseError(f"{path} is not a privstats release; give a file written by Release.save")
    if header["version"] != str(FORMAT_VERSION):
        raise ReleaseError(
            f"{path} has release format {header['version'][:20]!r} and this privstats reads {FORMAT_VERSION}; "
            "use the version that wrote it"
        )
    return header


def _tensor(data: bytes, path: str | os.PathLike[str]) -> NDArray[np.int64]:
    try:
        tensors = load_tensors(data)
    except SafetensorError:
        raise ReleaseError(f"{path} is damaged: its tensors cannot be read; fetch it again") from None
    vector = tensors.get("vector")
    if len(tensors) != 1 or vector is None or vector.dtype != np.int64 or vector.ndim != 1:
        raise ReleaseError(
            f"{path} does not hold the one int64 vector of a release; give a file written by Release.save"
        )
    return vector


def _signing_key(key: Ed25519PrivateKey | bytes) -> Ed25519PrivateKey:
    return key if isinstance(key, Ed25519PrivateKey) else Ed25519PrivateKey.from_private_bytes(_raw("signer", key))


def _verifying_key(key: Ed25519PublicKey | bytes) -> Ed25519PublicKey:
    return key if isinstance(key, Ed25519PublicKey) else Ed25519PublicKey.from_public_bytes(_raw("signed_by", key))


def _raw(field: str, key: Any) -> bytes:
    """The raw bytes of a key; what they are never stands in a message."""
    raw = isinstance(key, bytes | bytearray)
    if not raw or len(key) != _KEY_BYTES:
        kind = "private" if field == "signer" else "public"
        got = f"{len(key)} bytes" if raw else type(key).__name__
        raise ReleaseError(f"{field} must be an Ed25519 {kind} key or its {_KEY_BYTES} bytes, got {got}; give the key")
    return bytes(key)


def _verify(signature: str, sealed: bytes, key: Ed25519PublicKey, path: str | os.PathLike[str]) -> None:
    try:
        key.verify(bytes.fromhex(signature), sealed)
    except (InvalidSignature, ValueError):
        raise ReleaseError(f"{path} is not signed by the key you trust; ask its maker for a signed copy") from None


def _rebuild(data: bytes, vector: NDArray[np.int64], path: str | os.PathLike[str]) -> Release:
    try:
        manifest = msgspec.json.decode(data, type=_Manifest)
        plan = Plan.from_toml(manifest.plan)
        release = Release(plan, vector, manifest.survivors, manifest.suppressed, manifest.reproducible)
    except (msgspec.DecodeError, PrivstatsError) as error:
        raise ReleaseError(f"{path} carries a manifest that does not hold together: {error}") from None
    claims = (manifest.plan_digest, manifest.epsilon, manifest.delta, manifest.mu)
    budget = release.budget
    if claims != (plan.digest, _finite(budget.epsilon), budget.delta, _finite(budget.mu)):
        raise ReleaseError(f"{path} claims a digest or a budget that its own plan does not give; do not trust it")
    classes = getattr(plan.schema, "classes", 0)
    if manifest.sigma != dict(release.sigma) or not all(0 <= c < classes for c in release.suppressed):
        raise ReleaseError(f"{path} claims classes or noise that its own plan does not give; do not trust it")
    return release


def check_survivors(plan: Plan, survivors: tuple[int, ...]) -> None:
    """The promise rests on the plan's fewest survivors, so nothing is a release with fewer."""
    if not isinstance(survivors, tuple | list):
        raise ReleaseError(f"survivors must be a tuple of client numbers, got {type(survivors).__name__}; give (0, 1)")
    known = all(0 <= index < plan.cohort.clients for index in survivors)
    if not known or len(set(survivors)) != len(survivors) or len(survivors) < plan.cohort.min_survivors:
        raise ReleaseError(
            f"survivors must be at least {plan.cohort.min_survivors} different clients of "
            f"0..{plan.cohort.clients - 1}; with fewer the plan's promise does not hold"
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
