"""Hold a plan's published values, in a file next to it.

The plan holds their digest, so all parties use equal values. No promise depends on their contents: each kind's
guarantee holds for every admitted value.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privstats import domains
from privstats.errors import PlanError
from privstats.schema.checks import MAX_ENTRIES

if TYPE_CHECKING:
    from privstats.files.envelope import PathLike
    from privstats.files.signing import Signer, Verifier
    from privstats.schema.published_file import Arrays

VALUE_BITS = 20
"""Bits of an entry of published values, with its sign."""

_LARGEST = 1 << 53
_EXPONENTS = range(-256, 257)
_DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True, eq=False)
class Values:
    """An array of exact binary fractions: ``integers * 2.0**-exponent``.

    Attributes:
        integers: int64 of any shape, read-only.
        exponent: binary digits after the point, -256 to 256.

    Raises:
        PlanError: over 2**26 entries, one beyond 2**53, or a bad exponent.

    Example:
        >>> from privstats.schema.public_values import Values
        >>> values = Values.rounded([0.5, -0.25])
        >>> values.real.tolist(), Values.rounded([1 / 3]).near(Values.rounded([0.333334]))
        ([0.5, -0.25], True)
    """

    integers: NDArray[np.int64]
    exponent: int

    def __post_init__(self) -> None:
        raw: Any = self.integers
        if not isinstance(raw, np.ndarray) or raw.dtype != np.int64 or raw.size > MAX_ENTRIES:
            raise PlanError("published values must be an int64 array of at most 2**26 entries; use Values.rounded")
        if raw.size and not -_LARGEST <= int(raw.min()) <= int(raw.max()) <= _LARGEST:
            raise PlanError("published values hold an entry beyond 2**53, which no sum could hold exactly; scale them")
        if type(self.exponent) is not int or self.exponent not in _EXPONENTS:
            raise PlanError(f"published values need an integer exponent from -256 to 256, got {self.exponent!r:.60}")
        integers = np.array(raw, np.int64, order="C")
        integers.setflags(write=False)
        object.__setattr__(self, "integers", integers)

    @classmethod
    def rounded(cls, array: ArrayLike, bits: int = VALUE_BITS) -> Values:
        """Round to ``bits`` bits with one power-of-two scale; clip an entry that would round beyond them.

        Raises:
            PlanError: a nonfinite entry, or no exponent fits.
        """
        real = np.asarray(array, np.float64)
        largest = float(np.abs(real).max(initial=0.0))
        if not math.isfinite(largest):
            raise PlanError("values to be published must be finite; recompute them from the earlier release")
        exponent = bits - 1 - math.frexp(largest)[1] if largest else 0
        if exponent not in _EXPONENTS:
            raise PlanError("values to be published are out of the range of any scale; scale them")
        integers = np.asarray(np.rint(np.ldexp(real, exponent)))
        maximum = 2 ** (bits - 1) - 1
        return cls(np.asarray(np.clip(integers, -maximum, maximum), np.int64), exponent)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Values):
            return NotImplemented
        return self.exponent == other.exponent and np.array_equal(self.integers, other.integers)

    __hash__ = None  # type: ignore[assignment]

    @property
    def real(self) -> NDArray[np.float64]:
        """The values as exact float64."""
        return np.ldexp(self.floats, -self.exponent)

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The integers as read-only float64."""
        values = self.integers.astype(np.float64)
        values.setflags(write=False)
        return values

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of shape, exponent and integers."""
        header = f"{self.integers.shape} {self.exponent}".encode()
        return hashlib.sha256(domains.VALUES + header + b"\0" + self._bytes).digest()

    @property
    def _bytes(self) -> bytes:
        return self.integers.astype("<i8").tobytes()

    def near(self, other: Values, tolerance: float = 2.0**-16) -> bool:
        """Return whether entries differ by at most ``tolerance`` times the largest entry of both arrays.

        Eigenvectors differ in their last digits from machine to machine.
        """
        mine, theirs = self.real, other.real
        if mine.shape != theirs.shape:
            return False
        largest = max(float(np.abs(each).max(initial=0.0)) for each in (mine, theirs))
        return float(np.abs(mine - theirs).max(initial=0.0)) <= tolerance * largest


@dataclass(frozen=True)
class Published:
    """Named values of a plan, or only their digest.

    Attributes:
        sha256: digest of the values, 64 hex digits.
        after: digest of the releases that determined them; or empty.
        values: by name; None: only the digest is known.

    Raises:
        PlanError: a digest is malformed, or does not match.

    Example:
        >>> from privstats.schema.public_values import Published, Values
        >>> published = Published.of({"w": Values.rounded([0.5, -0.25])})
        >>> published.read()["w"].real.tolist(), len(published.sha256)
        ([0.5, -0.25], 64)
    """

    sha256: str
    after: str = ""
    values: Mapping[str, Values] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, minimum in (("sha256", 64), ("after", 0)):
            text = getattr(self, name)
            if not isinstance(text, str) or len(text) not in (minimum, 64) or not set(text) <= _DIGITS:
                raise PlanError(f"published.{name} needs 64 digits 0-9a-f ('after' may be empty), got {text!r:.80}")
        if self.values is None:
            return
        named = isinstance(self.values, Mapping) and all(
            isinstance(name, str) and name.isidentifier() and isinstance(value, Values)
            for name, value in self.values.items()
        )
        if not named:
            raise PlanError("published.values must map names to Values; build them with Published.of")
        if sum(value.integers.size for value in self.values.values()) > MAX_ENTRIES:
            raise PlanError("published.values have over 2**26 entries together, which no file may hold; publish fewer")
        if digest_of(self.values) != self.sha256:
            raise PlanError("these values do not match the plan's digest; fetch the file that belongs to the plan")
        object.__setattr__(self, "values", dict(sorted(self.values.items())))

    @classmethod
    def of(cls, values: Mapping[str, Values], after: bytes = b"") -> Published:
        """Return values with digests of themselves and of earlier releases."""
        return cls(digest_of(values), after.hex(), values)

    @classmethod
    def placeholder(cls) -> Published:
        """Return a digest that no values have, for a plan whose values follow from releases to come."""
        return cls("0" * 64)

    def read(self) -> Mapping[str, Values]:
        """Return the values.

        Raises:
            PlanError: only their digest is known.
        """
        if self.values is None:
            raise PlanError(
                "the plan's published values are missing: put their file next to the plan file, or give them with "
                "plan.with_values(values)"
            )
        return self.values

    def holding(self, values: Mapping[str, Values]) -> Published:
        """Return this digest with its values; PlanError unless they match."""
        return replace(self, values=values)

    def save(self, path: PathLike, signer: Signer | None = None) -> None:
        """Write a file; :func:`values_path` returns where ``Plan.read`` looks.

        Raises:
            PlanError: only the digest is known, or the signer is no key.
        """
        from privstats.schema.published_file import FORMAT, content_of

        FORMAT.write(path, content_of(self), signer)

    def encode(self) -> bytes:
        """Return the unsigned file of :meth:`save`."""
        from privstats.schema.published_file import FORMAT, content_of

        return FORMAT.encode(content_of(self))

    @classmethod
    def load(cls, path: PathLike, signed_by: Verifier | None = None) -> Published:
        """Read and verify what :meth:`save` wrote, in any version.

        Raises:
            PlanError: no such file, damaged, or wrongly signed.
        """
        from privstats.schema.published_file import read

        return read(cls._of_arrays, path, signed_by)

    @classmethod
    def _of_arrays(cls, after: str, arrays: Arrays) -> Published:
        values = {name: Values(*each) for name, each in arrays.items()}
        return cls(digest_of(values), after, values)

    @cached_property
    def table(self) -> dict[str, str]:
        """Table for the plan file."""
        return {"sha256": self.sha256, **({"after": self.after} if self.after else {})}


def digest_of(values: Mapping[str, Values]) -> str:
    """Return the SHA-256 of names and values, unambiguously encoded, in hex.

    Example:
        >>> from privstats.schema.public_values import digest_of
        >>> digest_of({})[:8]
        '9ddd33d1'
    """
    digest = hashlib.sha256(domains.PUBLISHED)
    for name, value in sorted(values.items()):
        for part in (name.encode(), f"{value.integers.shape} {value.exponent}".encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
        digest.update(value._bytes)
    return digest.hexdigest()


def values_path(plan_file: str | os.PathLike[str]) -> Path:
    """Return the path of a plan file's values.

    Example:
        >>> from privstats.schema.public_values import values_path
        >>> values_path("round.toml").name
        'round.values'
    """
    return Path(plan_file).with_suffix(".values")
