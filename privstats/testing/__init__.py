"""Hypothesis strategies for the objects of privstats, and a transport in memory, for our tests and yours."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.testing.datasets import chunkings as chunkings
    from privstats.testing.datasets import entries as entries
    from privstats.testing.datasets import partitions as partitions
    from privstats.testing.datasets import records as records
    from privstats.testing.plans import cohorts as cohorts
    from privstats.testing.plans import dropout_schedules as dropout_schedules
    from privstats.testing.plans import plans as plans
    from privstats.testing.plans import privacies as privacies
    from privstats.testing.plans import shards as shards
    from privstats.testing.schemas import class_schemas as class_schemas
    from privstats.testing.schemas import ridge_schemas as ridge_schemas
    from privstats.testing.schemas import schemas as schemas
    from privstats.testing.tables import held as held
    from privstats.testing.tables import table_values as table_values
    from privstats.testing.transport import MockTransport as MockTransport
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
