"""Transport to a common Gaussian (SLOT-Align), the one transform that differs between parties.

A client's copy stores its own map outside the fields, so that it equals the plan's transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.transforms.base import Transform
from privstats.transforms.exact import Rows, arrays_of, product

_BITS = 22  # of the largest entry of the matrix


@dataclass(frozen=True)
class Transport(Transform):
    """``(1 - tau) x + tau (mu + A (x - mu_k))``: from a client's Gaussian toward the reference (docs/alignment.md).

    Guarantee:
        The map is fitted on the client's records (``local``), so one record moves the features of all. No useful bound
        is known for that: plans promise clients alone. That promise holds, because rows are
        clipped after the map.

    Args:
        features: d, in and out.
        reference: SHA-256 of the published mean and covariance, in hex.
        strength: tau, 0 to 1.

    Example:
        >>> transport = ps.transforms.Transport(features=2, reference="ab" * 32, strength=0.4)
        >>> transport.local, transport.outputs(2)  # a client measures with a copy that is bound to its own records
        (True, 2)
    """

    features: int
    reference: str
    strength: float
    kind: ClassVar[str] = "transport"
    affine: ClassVar[bool] = True
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.features) is not int or self.features < 2:
            raise SchemaError(f"transport features must be an integer of at least 2, got {self.features!r:.40}")
        digest = isinstance(self.reference, str) and len(self.reference) == 64
        if not digest or not set(self.reference) <= set("0123456789abcdef"):
            raise SchemaError("transport reference must be a SHA-256 in 64 lower-case hex digits, the reference's")
        number = isinstance(self.strength, int | float) and not isinstance(self.strength, bool)
        if not number or not 0 <= self.strength <= 1:
            raise SchemaError(f"transport strength must be a number from 0 to 1, got {self.strength!r:.40}")
        object.__setattr__(self, "strength", float(self.strength))

    @property
    def of_a_client(self) -> bool:
        """Whether this is a client's copy."""
        return "_way" in self.__dict__

    def bound(self, start: NDArray[Any], mean: NDArray[Any], matrix: NDArray[Any]) -> Transport:
        """Return a client's copy, able to map rows: its mean ``start``, the reference's ``mean``, and symmetric A."""
        way = (1 - self.strength) * np.eye(self.features) + self.strength * matrix
        scale = math.frexp(float(np.abs(way).max()))[1] - _BITS
        own = Transport(self.features, self.reference, self.strength)
        shift = self.strength * (mean - matrix @ start)
        object.__setattr__(own, "_way", (np.rint(np.ldexp(way, -scale)), scale, shift))
        return own

    def apply(self, rows: Rows) -> Rows:
        """Transport rows; SchemaError on the plan's copy."""
        if not self.of_a_client:
            raise SchemaError(
                "this transport is the plan's and has no client: use reference.local(transport, X) of your records "
                "instead, to measure or predict"
            )
        xp = arrays_of(rows)
        matrix, scale, shift = self.__dict__["_way"]
        return product(rows, xp.like(matrix, rows), _BITS) * 2.0**scale + xp.like(shift, rows)

    def outputs(self, inputs: int | None) -> int:
        """Return the number of features."""
        if inputs not in (None, self.features):
            raise SchemaError(f"transport takes {self.features} features but {inputs} come in; make them equal")
        return self.features

    def takes(self, outputs: int) -> int:  # noqa: ARG002 - the signature of Transform
        """Return the number of features."""
        return self.features
