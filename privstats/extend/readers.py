"""Add a reader of ``privstats table``: check releases and levels, compute contrasts and quantiles, reuse options.

A reader is a ``privstats.workflows.tables.TableReader`` under the entry points ``privstats.readers``.
docs/how_to_add.md has the steps under "A reader of a table".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.inference.description import Count as Count
    from privstats.inference.description import Description as Description
    from privstats.inference.description import Law as Law
    from privstats.inference.evidence import CONSTANT as CONSTANT
    from privstats.inference.evidence import contrasts_of as contrasts_of
    from privstats.inference.evidence import residual_degrees as residual_degrees
    from privstats.inference.figures import INK as INK
    from privstats.inference.figures import LINES as LINES
    from privstats.inference.figures import SMALL as SMALL
    from privstats.inference.figures import figure_of as figure_of
    from privstats.inference.inversion import condition as condition
    from privstats.inference.inversion import quantile as quantile
    from privstats.inference.regression.restricted_likelihood import MixedErrors as MixedErrors
    from privstats.inference.releases import chosen_columns as chosen_columns
    from privstats.inference.releases import require_gaussian as require_gaussian
    from privstats.inference.releases import require_level as require_level
    from privstats.inference.releases import require_records as require_records
    from privstats.inference.reporting import Source as Source
    from privstats.workflows.tables.options import Ratios as Ratios
    from privstats.workflows.tables.regressions import regression as regression
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.inference.description": ["Count", "Description", "Law"],
            "privstats.inference.evidence": ["CONSTANT", "contrasts_of", "residual_degrees"],
            "privstats.inference.figures": ["INK", "LINES", "SMALL", "figure_of"],
            "privstats.inference.inversion": ["condition", "quantile"],
            "privstats.inference.regression.restricted_likelihood": ["MixedErrors"],
            "privstats.inference.releases": ["chosen_columns", "require_gaussian", "require_level", "require_records"],
            "privstats.inference.reporting": ["Source"],
            "privstats.workflows.tables.options": ["Ratios"],
            "privstats.workflows.tables.regressions": ["regression"],
        },
    )
