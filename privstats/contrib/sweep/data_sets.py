"""Fit one plan to each data set of a folder, so that one command scores all of them for one table."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privstats.errors import DataError, PlanError
from privstats.extend.records import is_table, path_of
from privstats.intake.table_sources import files_in
from privstats.kinds import ClassSchema, RidgeSchema
from privstats.moments import Records
from privstats.plan import Plan
from privstats.transforms import apply, input_features


def archives_in(path: str | os.PathLike[str]) -> list[Path]:
    """Return the npz files of a folder, by name; none where the path is no folder, or a folder of tables.

    Raises:
        DataError: next to an npz file, another file that would be left out without a word, or a second one of its name.
    """
    folder = path_of(path)
    files = files_in(folder) if folder.is_dir() else []
    archives = {file: file.stem for file in files if file.is_file() and not is_table(file)}
    for file in files if archives else ():
        if file not in archives or file.parent != folder:
            raise DataError(
                f"{folder} holds {file.relative_to(folder)} next to npz files, of which each is a data set: write its "
                "arrays X and y as an npz file into the folder itself, or move it away"
            )
        if list(archives.values()).count(file.stem) > 1:
            raise DataError(f"{folder} holds two data sets of the name {file.stem!r}: rename one")
    return list(archives)


def adapts(plan: Plan, train: Records, test: Records) -> bool:
    """Return whether arrays have other features, or more classes, than a plan that names neither.

    Example:
        >>> from privstats.contrib.sweep.data_sets import adapts
        >>> from privstats.moments import Records
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 4, "NAB", 8.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> adapts(plan, *[Records(np.eye(4), np.arange(4) % 2)] * 2), adapts(plan, *[Records(np.eye(5), [0] * 5)] * 2)
        (False, True)
    """
    schema: Any = plan.schema
    names = (schema.reading.names, getattr(schema, "class_names", None), schema.reading.declaration)
    if not isinstance(schema, ClassSchema | RidgeSchema) or any(each is not None for each in names):
        return False
    labels = [np.asarray(each.y) for each in (train, test)]
    more = False
    if isinstance(schema, ClassSchema) and all(each.dtype.kind in "iu" for each in labels):
        more = max(int(each.max(initial=0)) for each in labels) >= schema.classes
    return more or bool(np.shape(train.X)[1:] != (input_features(schema.transform, schema.features),))


def fitted(plan: Plan, name: str, train: Records, test: Records) -> Plan:
    """Return the plan with a data set's own numbers of features and classes, and room for its records.

    These numbers are public in a sweep. Clip norm, transform, promise and parties stay the plan's, so the records of
    all sets must have the same scale, or the transform must bring them to one, such as ``UnitNorm``.

    Args:
        plan: of classes or of a regression, without names of columns or classes.
        name: of the data set, for messages.
        train, test: its records.

    Raises:
        DataError: rows that are not of two dimensions.
        PlanError: another kind of plan, or one with names.
        SchemaError: a transform for another number of features.

    Example:
        >>> from privstats.contrib.sweep.data_sets import fitted
        >>> from privstats.moments import Records
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 4, "NAB", 8.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> records = Records(np.eye(12), np.arange(12) % 3)
        >>> own = fitted(plan, "trees", records, records)
        >>> own.schema.classes, own.schema.features, own.cohort.max_records
        (3, 12, 12)
    """
    schema: Any = plan.schema
    if not isinstance(schema, ClassSchema | RidgeSchema):
        raise PlanError("a folder of data sets needs a plan of classes or of a regression; name one file for this plan")
    if schema.feature_names is not None or getattr(schema, "class_names", None) is not None:
        raise PlanError(
            f"the plan names its columns or classes, and {name} has its own: remove feature_names and class_names, or "
            "name one file"
        )
    if (dimensions := np.ndim(train.X)) != 2:
        raise DataError(f"X of {name} must have shape (records, features), got {dimensions} dimensions")
    sizes: dict[str, Any] = {"features": int(apply(schema.transform, np.asarray(train.X[:1], np.float64)).shape[1])}
    if isinstance(schema, ClassSchema):
        sizes["classes"] = 1 + int(max(np.max(train.y), np.max(test.y)))
    cohort = replace(plan.cohort, max_records=max(plan.cohort.max_records, len(train.y)))
    return replace(plan, schema=replace(schema, **sizes), cohort=cohort)
