"""Define what is measured, and the bound that every record obeys."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.intake.declared.categories import Categories as Categories
    from privstats.records.variables import Bins as Bins
    from privstats.records.variables import Variable as Variable
    from privstats.schema.base import COUNT_SCALE as COUNT_SCALE
    from privstats.schema.base import Schema as Schema
    from privstats.schema.kinds import USUAL as USUAL
    from privstats.schema.kinds import bare as bare
    from privstats.schema.kinds import is_known as is_known
    from privstats.schema.kinds import narrowed as narrowed
    from privstats.schema.kinds import predicted as predicted
    from privstats.schema.kinds import require_schema as require_schema
else:
    __getattr__, __dir__ = lazy_names(__name__)
