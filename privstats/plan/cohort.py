"""Who takes part: how many clients, how many must survive, how many may collude, how many records at most.

A frozen value; the masking thresholds that follow from it are ``secagg.Parameters``.
"""

from __future__ import annotations

from dataclasses import dataclass

from privstats.errors import PlanError

__all__ = ["Cohort"]


@dataclass(frozen=True)
class Cohort:
    """The parties of one aggregation.

    Args:
        clients: parties in the roster, at least 2.
        min_survivors: fewest clients whose vectors may be unmasked; with fewer the session aborts without a sum.
        max_records: most records over all clients together. Rings are sized by it.
        colluders: clients that may work with the server without learning another client's vector; distributed noise
            does not count on their shares.

    Raises:
        PlanError: naming the field, its bound and the remedy.
    """

    clients: int
    min_survivors: int
    max_records: int
    colluders: int = 0

    def __post_init__(self) -> None:
        for field, least in (("clients", 2), ("min_survivors", 1), ("max_records", 1), ("colluders", 0)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int):
                raise PlanError(f"cohort.{field} must be a whole number, got {type(value).__name__}")
            if value < least:
                raise PlanError(f"cohort.{field} must be at least {least}, got {value}")
        if self.min_survivors > self.clients:
            raise PlanError(
                f"cohort.min_survivors={self.min_survivors} exceeds cohort.clients={self.clients}; lower min_survivors"
            )
        if self.colluders >= self.min_survivors:
            raise PlanError(
                f"cohort.colluders={self.colluders} must stay below cohort.min_survivors={self.min_survivors}, "
                "or no honest survivor is left to hide among; lower colluders or raise min_survivors"
            )
