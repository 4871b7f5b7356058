"""What the reports of a session prove, as a frozen value of plain numbers: equal for all parties, and in the digest.

A plan derives it from its schema; the machines derive the statement from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from privstats.secagg.upload.proof.counts import of_counts
from privstats.secagg.upload.proof.moments import of_classes, of_folds, of_separate_classes
from privstats.secagg.upload.proof.norm import of_norms
from privstats.secagg.upload.proof.statement import Statement

__all__ = ["Claim", "Sums", "statement_of"]

Sums: TypeAlias = Literal["classes", "class means", "classes apart", "folds", "tables", "norms"]
"""Which sums a statement reads: N, A and B; N and A; N, A and S; a regression's folds; tables of counts; norms."""

_VERSION = "proof/1"


@dataclass(frozen=True)
class Claim:
    """What every report of a session proves.

    Args:
        sums: the kind of the sums.
        sizes: its numbers, as the statement of this kind takes them: classes and features; features, targets and
            folds; cells of each table; entries of each statistic.
        unit: wire steps of one record in every statistic, 4**f; in tables of one record, or of one grid step.
        most_records: n; in tables, in these units.
        grid_bits: f; 0 in tables.
        counters: in norms, the places of entries between 0 and n records.
        clipped: the plan shrinks whole clients.

    Example:
        >>> from privstats.secagg.upload.proof.claims import Claim, statement_of
        >>> statement_of(Claim("classes", (10, 64), 4**12, 68, 12)).bits
        23
    """

    sums: Sums
    sizes: tuple[int, ...]
    unit: int
    most_records: int
    grid_bits: int = 0
    counters: tuple[int, ...] = ()
    clipped: bool = False

    @property
    def stated(self) -> tuple[object, ...]:
        """What stands for the claim in a digest: its fields, and the numbers that follow from them."""
        statement = statement_of(self)
        fields = (self.sums, self.sizes, self.unit, self.most_records, self.grid_bits, self.counters, self.clipped)
        return (_VERSION, statement.name, *fields, statement.signed, statement.bits, statement.ends)


@lru_cache(maxsize=8)
def statement_of(claim: Claim) -> Statement:
    """The statement that a claim names, the same for all parties.

    Raises:
        PlanError: so many records have no room in the field.
    """
    return _KINDS[claim.sums](claim)


def _classes(claim: Claim) -> Statement:
    classes, features = claim.sizes
    return of_classes(classes, features, claim.grid_bits, claim.most_records, clipped=claim.clipped)


def _means(claim: Claim) -> Statement:
    classes, features = claim.sizes
    return of_classes(classes, features, claim.grid_bits, claim.most_records, second=False)


def _apart(claim: Claim) -> Statement:
    classes, features = claim.sizes
    return of_separate_classes(classes, features, claim.grid_bits, claim.most_records)


def _folds(claim: Claim) -> Statement:
    features, targets, folds = claim.sizes
    return of_folds(features, targets, folds, claim.grid_bits, claim.most_records)


_KINDS: Mapping[Sums, Callable[[Claim], Statement]] = {
    "classes": _classes,
    "class means": _means,
    "classes apart": _apart,
    "folds": _folds,
    "tables": lambda claim: of_counts(claim.sizes, claim.unit, claim.most_records),
    "norms": lambda claim: of_norms(claim.sizes, claim.unit, claim.most_records, claim.counters),
}
