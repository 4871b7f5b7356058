"""Hypothesis strategies for the objects of privstats, for our tests and for yours."""

from privstats.testing.datasets import chunkings, partitions, records
from privstats.testing.schemas import class_schemas, ridge_schemas, schemas

__all__ = ["chunkings", "class_schemas", "partitions", "records", "ridge_schemas", "schemas"]
