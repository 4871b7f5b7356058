"""Define what is measured, and the bound that every record obeys."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.intake.declared.categories import Categories as Categories
    from privstats.records.variables import Bins as Bins
    from privstats.records.variables import Variable as Variable
    from privstats.schema.base import COUNT_SCALE as COUNT_SCALE
    from privstats.schema.base import Schema as Schema
    from privstats.schema.narrowing import USUAL as USUAL
    from privstats.schema.narrowing import bare as bare
    from privstats.schema.narrowing import is_known as is_known
    from privstats.schema.narrowing import narrowed as narrowed
    from privstats.schema.narrowing import predicted as predicted
    from privstats.schema.narrowing import require_schema as require_schema
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.intake.declared.categories": ["Categories"],
            "privstats.records.variables": ["Bins", "Variable"],
            "privstats.schema.base": ["COUNT_SCALE", "Schema"],
            "privstats.schema.narrowing": ["USUAL", "bare", "is_known", "narrowed", "predicted", "require_schema"],
        },
    )
