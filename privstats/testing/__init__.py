"""Hypothesis strategies for the objects of privstats, and a transport in memory, for our tests and yours."""

from privstats.testing.datasets import chunkings, entries, partitions, records
from privstats.testing.plans import cohorts, dropout_schedules, plans, privacies, shards
from privstats.testing.schemas import class_schemas, ridge_schemas, schemas
from privstats.testing.tables import held, table_values
from privstats.testing.transport import MockTransport

__all__ = [
    "MockTransport",
    "chunkings",
    "class_schemas",
    "cohorts",
    "dropout_schedules",
    "entries",
    "held",
    "partitions",
    "plans",
    "privacies",
    "records",
    "ridge_schemas",
    "schemas",
    "shards",
    "table_values",
]
