"""Store exact moments as plain bytes: sums in wire order, and what the data holder's reports need.

No code runs when the bytes are read. They hold exact sums, so they are as private as the records.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any, Self

import msgspec
import numpy as np

from privstats.encoding import flatten, unflatten
from privstats.encoding.layout import blocks_of
from privstats.moments import Beyond, ClipReport, EdgeReport, Moments, PersonMoments
from privstats.schema import Bins, Schema
from privstats.secagg.wire import HiddenRepr


class StoredMoments(HiddenRepr, msgspec.Struct, frozen=True, kw_only=True):
    """Exact moments without their schema.

    Attributes:
        vector: sums in wire order, then those of further variants, int64.
        clips, edges: the reports on clips and on edges of bins.
        variants: number of further vectors; the index in the roster selects one.
        counted: records towards the plan's limits.
        shrunk, persons: number of clipped persons, and of persons.
        published: digest of the published values.
    """

    vector: bytes
    records: int | None
    clips: dict[str, Any] | None
    edges: list[tuple[str, int, int, int]] | None = None
    variants: int = 0
    counted: int | None = None
    shrunk: int = 0
    persons: int | None = None
    published: str = ""

    @classmethod
    def of(cls, moments: Moments, **more: Any) -> Self:
        """Store moments; ``more`` are a subclass's fields."""
        report, beyond = clip_report_of(moments), getattr(moments, "edge_report", None)
        variants: tuple[Moments, ...] = getattr(moments, "variants", ())
        return cls(
            vector=b"".join(flatten(each).astype("<i8").tobytes() for each in (moments, *variants)),
            records=moments.records,
            clips=None if report is None else asdict(report),
            edges=beyond and [(each.name, each.numbers, each.below, each.above) for each in beyond.beyond],
            variants=len(variants),
            counted=moments.counted,
            shrunk=getattr(moments, "shrunk", 0),
            persons=getattr(moments, "persons", None),
            published=getattr(moments, "published", ""),
            **more,
        )

    def moments(self, schema: Schema, person_clip: Any) -> Moments:
        """Return the moments.

        Args:
            person_clip: ``plan.person_clip``, under which they were measured.
        """
        parts = np.frombuffer(self.vector, "<i8").astype(np.int64).reshape(1 + self.variants, -1)
        more: dict[str, Any] = {}
        if self.variants:
            more["variants"] = tuple(self._settled(unflatten(schema, part)) for part in parts[1:])
        if self.clips is not None:
            counts = tuple(self.clips["norm_counts"])
            more["clip_report"] = ClipReport(**{**self.clips, "norm_counts": counts})
        if self.edges is not None:
            variables: Any = getattr(schema, "variables", ())
            expected = tuple(each.open for each in variables if isinstance(each, Bins))
            more["edge_report"] = EdgeReport(tuple(Beyond(*each) for each in self.edges), expected)
        moments: Moments = self._settled(replace(self._sums(schema, parts[0], person_clip), **more))
        return moments

    def _sums(self, schema: Schema, vector: Any, person_clip: Any) -> Any:
        if person_clip is None:
            return unflatten(schema, vector)
        sums = PersonMoments(schema, blocks_of(schema, vector), person_clip, self.records, self.counted, self.shrunk)
        return replace(sums, persons=self.persons)

    def _settled(self, moments: Moments) -> Any:
        """Return moments with the fields that neither sums nor reports give, where their kind has these fields."""
        named: Any = moments
        held = {each.name for each in fields(named)} & {"records", "published"}
        return replace(named, **{name: getattr(self, name) for name in held})


def clip_report_of(moments: Moments) -> ClipReport | None:
    """Return the clip report; None without one."""
    return getattr(moments, "clip_report", None)
