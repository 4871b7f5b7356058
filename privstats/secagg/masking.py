"""What a plan, its table of facts and its budget ask of a masking protocol's parameters, whichever protocol it is.

An interface, no behaviour: whoever reads thresholds, a graph or the names of steps is inside one protocol's room. The
machines that run under it are in ``machines``, the protocols in ``protocols``.
"""

from __future__ import annotations

from typing import Any, Protocol

from privstats.encoding import Ring

__all__ = ["Masking"]


class Masking(Protocol):
    """The public parameters of one aggregation: a frozen value, equal for all parties that may talk to each other."""

    @property
    def protocol(self) -> str:
        """The name in :data:`privstats.secagg.protocols.PROTOCOLS`."""
        ...

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order; opaque to everybody else."""
        ...

    @property
    def upload_step(self) -> str:
        """The step whose answer carries a client's vector: who answers it is in the sum, who vanishes before is not."""
        ...

    @property
    def clients(self) -> int:
        """Parties on the roster."""
        ...

    @property
    def min_survivors(self) -> int:
        """The fewest clients whose sum may be revealed."""
        ...

    @property
    def ring(self) -> Ring:
        """What is summed."""
        ...

    @property
    def upload_bytes(self) -> int:
        """Size of a client's masked vector on the wire, in bytes."""
        ...

    @property
    def digest(self) -> bytes:
        """32 bytes that stand for these parameters, the plan and the cryptographic suite."""
        ...

    @property
    def failure(self) -> float:
        """Bound on the probability that masking shows more than the sum; the budget adds it to delta."""
        ...

    @property
    def remedy(self) -> str:
        """What to change in a plan whose :attr:`failure` is too large, as the end of a sentence."""
        ...

    @property
    def condition(self) -> str:
        """What the promise holds against only, as the end of a sentence; empty where nothing is assumed."""
        ...

    def facts(self) -> list[str]:
        """One sentence per fact, for the person who reviews a plan."""
        ...

    def numbers(self) -> dict[str, Any]:
        """The same for scripts: names and numbers, nested at will; infinities are allowed."""
        ...
