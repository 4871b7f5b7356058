"""The row of the table reader ``site-levels``, which loads what computes on use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from privstats.extend.doors import Option
from privstats.extend.readers import Ratios
from privstats.workflows.tables import TableReader
from privstats.workflows.tables.options import Unclipped


@dataclass(frozen=True)
class OfSiteLevels(Ratios, Unclipped):
    """Options of ``site-levels``."""

    columns: Annotated[
        list[str] | None,
        Option("a regressor of a linear regression; the other columns are sites.", "NAME", "--column"),
    ] = None


READER = TableReader(
    "site-levels",
    {"ridge": "", "score": ""},
    "privstats.contrib.site_levels.commands:table",
    OfSiteLevels,
    check="privstats.contrib.site_levels.commands:check",
    of_courses=True,
    proposed=False,
)
