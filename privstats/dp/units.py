"""What one unit of a promise costs under given noise: a record, a client of so many, or a person's average.

``sensitivities`` knows records and clients. A clipped unit has no row here, because its clip alone bounds it; two of
them are :func:`apart`. Proofs: docs/sensitivity.md, One person.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from privstats.dp.privacy import Adjacency, Privacy
from privstats.dp.sensitivities import client_mu, joint_mu
from privstats.schema import Schema
from privstats.schema.statistic import by_letter

__all__ = ["apart", "averaged_mu", "unit_mu"]


def unit_mu(schema: Schema, privacy: Privacy, sigmas: Mapping[str, float], adjacency: Adjacency) -> float:
    """mu of the unit of a promise, where no clip bounds it: linear in a factor of all 1 / sigma."""
    if privacy.averaged:
        return averaged_mu(schema, sigmas, adjacency)
    if privacy.max_records_per_client is not None:
        return client_mu(schema, sigmas, adjacency, privacy.max_records_per_client)
    return joint_mu(schema, sigmas, adjacency)


def averaged_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency) -> float:
    """mu of one person who adds the average of what the rows add, cut toward zero to whole steps.

    An average is no longer than the longest of its rows, and the cut only shortens it: add-remove is the price of one
    record. The difference of two averages is an average of differences of two rows, so replace-one is the record's,
    and the cut adds less than a step an entry; nor do two persons pass :func:`apart`, which the cut keeps.

    Guarantee:
        Unit: one person with any number of rows at one party. For every kind whose sums are sums over records.

    Example:
        >>> schema, noise = ps.ClassSchema(2, 2, "NA", clip_norm=3.0), {"N": 10.0, "A": 40.0}
        >>> ps.dp.averaged_mu(schema, noise, "add-remove") == ps.dp.joint_mu(schema, noise, "add-remove")
        True
        >>> round(ps.dp.averaged_mu(schema, noise, "replace-one") / ps.dp.joint_mu(schema, noise, "replace-one"), 2)
        1.0
    """
    added = joint_mu(schema, sigmas, "add-remove")
    if adjacency == "add-remove":
        return added
    opposed = joint_mu(schema, {s: sigma / apart(schema, s, adjacency) for s, sigma in sigmas.items()}, "add-remove")
    if schema.task not in _CUT:
        return opposed
    return min(opposed, max(added, joint_mu(schema, sigmas, adjacency)) + _cut(schema, sigmas))


_CUT = ("classes", "ridge", "score", "calibration", "effect")
"""The kinds in which two records are less far apart than any two vectors of their lengths."""


def _cut(schema: Schema, sigmas: Mapping[str, float]) -> float:
    """What cutting two averages to whole steps moves at most: one step an entry, of a matrix on both sides."""
    rows = by_letter(schema.table, "".join(sigmas))
    steps = {row.letter: math.prod(row.shape(schema.sizes)) for row in rows}
    return math.sqrt(math.fsum(steps[s] / (sigma * schema.scale_of(s)) ** 2 for s, sigma in sigmas.items()))


def apart(schema: Schema, statistic: str, adjacency: Adjacency) -> float:
    """How far two persons are apart in a statistic, over the root mean square of their lengths; 1 where one is none.

    ``|v - v'|^2 <= 2 (|v|^2 + |v'|^2)`` for any two vectors, and half of that where no entry is negative. Cutting a
    positive matrix entry by entry may leave it indefinite, so that alone tells nothing.
    """
    if adjacency == "add-remove":
        return 1.0
    unsigned = _UNSIGNED[schema.task](schema) if schema.task in _UNSIGNED else ""
    return math.sqrt(2) if statistic in unsigned else 2.0


_UNSIGNED: Mapping[str, Callable[[Any], str]] = {
    "classes": lambda schema: "NABSD" if schema.nonnegative else "ND",
    "ridge": lambda schema: "Gq" if schema.nonnegative else "q",
    "counts": lambda _: "T",
    "scoring": lambda _: "T",
    "gradients": lambda _: "k",
    "mean": lambda schema: "x" if schema.nonnegative else "",
    "effect": lambda _: "N",
}
"""By the schema's task, the letters of which no record has a negative entry."""
