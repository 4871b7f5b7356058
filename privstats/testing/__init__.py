"""Hypothesis strategies for the objects of privstats, and a transport in memory."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.testing.contracts import MockTransport as MockTransport
    from privstats.testing.contracts import check_module as check_module
    from privstats.testing.kinds import check_kind as check_kind
    from privstats.testing.strategies import chunkings as chunkings
    from privstats.testing.strategies import class_schemas as class_schemas
    from privstats.testing.strategies import cohorts as cohorts
    from privstats.testing.strategies import dropout_schedules as dropout_schedules
    from privstats.testing.strategies import entries as entries
    from privstats.testing.strategies import partitions as partitions
    from privstats.testing.strategies import plans as plans
    from privstats.testing.strategies import privacies as privacies
    from privstats.testing.strategies import records as records
    from privstats.testing.strategies import ridge_schemas as ridge_schemas
    from privstats.testing.strategies import schemas as schemas
    from privstats.testing.strategies import shards as shards
    from privstats.testing.tables import held as held
    from privstats.testing.tables import table_values as table_values
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.testing.contracts": ["MockTransport", "check_module"],
            "privstats.testing.kinds": ["check_kind"],
            "privstats.testing.strategies": [
                "chunkings",
                "class_schemas",
                "cohorts",
                "dropout_schedules",
                "entries",
                "partitions",
                "plans",
                "privacies",
                "records",
                "ridge_schemas",
                "schemas",
                "shards",
            ],
            "privstats.testing.tables": ["held", "table_values"],
        },
    )
