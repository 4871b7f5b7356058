"""The row of the table reader ``imputed``, which loads what computes on use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Annotated

from privstats.errors import ReleaseError
from privstats.extend.doors import Option
from privstats.extend.readers import Ratios
from privstats.workflows.tables import TableReader
from privstats.workflows.tables.options import OfColumns, Referred

SHARES: Mapping[str, float] = MappingProxyType({"N": 0.02, "A": 0.02, "S": 0.96})
"""Shares of the budget for a plan of sums by gap pattern: the analysis reads S alone."""

_OF_RATIOS = next(each.metadata for each in fields(Ratios) if each.name == "exponentiate")


@dataclass(frozen=True)
class OfImputed(OfColumns, Ratios, Referred):
    """Options of ``imputed``."""

    outcome: Annotated[
        str | None, Option("the outcome's column, in sums by gap pattern or in a table of counts.", "NAME")
    ] = None
    by: Annotated[str | None, Option("of counts, the variable of groups.", "NAME")] = None
    reference: Annotated[
        list[str] | None, Option("of counts, the cell that others of its column are compared with.", "COLUMN=CELL")
    ] = None
    interactions: Annotated[
        list[str] | None,
        Option(
            "of counts, two columns whose product is in the regression, in quotes; repeat.",
            "COLUMN*COLUMN",
            "--interaction",
        ),
    ] = None
    exponentiate: Annotated[bool, Option("of counts, odds ratios with their intervals.", flag="--exponentiate")] = (
        field(default=False, metadata=_OF_RATIOS)
    )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The two columns of each interaction."""
        parts = (each.partition("*")[::2] for each in self.interactions or ())
        pairs = [(first.strip(), second.strip()) for first, second in parts]
        if not all(first and second for first, second in pairs):
            raise ReleaseError('--interaction names two columns with a star between: --interaction "arm*sex"')
        return pairs


READER = TableReader(
    "imputed",
    {"classes": "NAS", "counts": ""},
    "privstats.contrib.imputation.tables:imputed",
    OfImputed,
    check="privstats.contrib.imputation.tables:check",
    shares=SHARES,
    proposed=False,
)
