"""Refuse plans with fields that contradict each other, and plans that must not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from privstats.dp import Noise, NoPrivacy, Privacy
from privstats.encoding import Layout
from privstats.errors import PlanError
from privstats.printable import at_least, at_most
from privstats.schema import Schema
from privstats.schema.base import by_letter
from privstats.secagg.machines import Masking
from privstats.secagg.protocols import PROTOCOLS

if TYPE_CHECKING:
    from privstats.plan.plan import Plan
    from privstats.schema.public_values import Published

MAX_VECTOR_BYTES = 1 << 32
"""Largest flat vector of 64-bit integers, in bytes, under any protocol; ``split`` limits its packed form, too."""

EXCESS_KEPT = "kept"
EXCESS = EXCESS_KEPT, "removed"
"""Values of ``excess_noise``: what happens to the noise of survivors beyond the minimum."""

_SMALLEST_PANEL = 2
_PART_OF_DELTA = 0.01
# The sum of the four bounds that a random graph counts, each at most 2**-40: docs/wire/interactive.md.
_WITHOUT_DP = 2.0**-38


def check_published(schema: Schema, privacy: Privacy | NoPrivacy, published: object) -> None:
    """Refuse missing, surplus or unfit values, and a promise that the schema's kind cannot keep."""
    if bool(schema.needs) != (published is not None):
        wanted = ", ".join(schema.needs)
        raise PlanError(
            f"this schema reads published values ({wanted}); pass published=Published.of(...)"
            if wanted
            else "this schema reads no published values; omit published"
        )
    if published is not None:
        _check_values(schema, published)
    refusal = schema.refusal(privacy.unit if isinstance(privacy, Privacy) else None)
    if refusal:
        raise PlanError(refusal)
    person = isinstance(privacy, Privacy) and privacy.unit == "person"
    if person and (why := schema.refuses_persons(averaged=isinstance(privacy, Privacy) and privacy.averaged)):
        message = f"unit='person' is not offered for task={schema.task!r}: {why}"
        several = "; where one person has m rows, unit='record' promises that person m times mu (dp.group_mu)"
        raise PlanError(message if schema.refusal("record") else message + several)


def check_panel(plan: Plan) -> None:
    """Refuse a panel without a protocol that has one, and such a protocol without a panel."""
    require_panel(plan.protocol, plan.panel)


def require_panel(protocol: str, panel: Sequence[str]) -> None:
    """Refuse a panel that a protocol does not have, or that is too small for it."""
    has_panel = PROTOCOLS[protocol].has_panel
    if panel and not has_panel:
        raise PlanError(f"protocol={protocol!r} has no helpers: omit panel, or choose protocol={_with_panel()}")
    if has_panel and len(panel) < _SMALLEST_PANEL:
        raise PlanError(f"protocol={protocol!r} needs a panel: the leader's identity and at least one helper's")


def check_noise(plan: Plan) -> None:
    """Refuse a panel's noise under a protocol without a panel."""
    privacy = plan.privacy
    if isinstance(privacy, NoPrivacy) or privacy.trust.drawn_by != "member" or PROTOCOLS[plan.protocol].has_panel:
        return
    raise PlanError(
        f"model={privacy.model!r} is noise of a leader and helpers, and protocol={plan.protocol!r} has none: choose "
        f"protocol={_with_panel()} with a panel, or another model"
    )


def _with_panel() -> str:
    return " or ".join(repr(name) for name, row in PROTOCOLS.items() if row.has_panel)


def check_min_count(plan: Plan) -> None:
    """Refuse a minimum count that no class could have."""
    schema, most = plan.schema, plan.cohort.max_records
    if not schema.suppressible:
        if plan.min_count or plan.merge:
            raise PlanError(f"min_count and merge are about classes; a {schema.task} plan has none, so omit them")
        return
    if plan.min_count > most:
        raise PlanError(
            f"min_count={plan.min_count} exceeds cohort.max_records={most}, so no class can have {plan.min_count} "
            "records; lower min_count"
        )


def check_merge(plan: Plan) -> None:
    """Refuse classes to merge that do not exist, and a merge that no count could start."""
    if plan.schema.suppressible:
        _check_pairs(plan.merge, range(plan.schema.sizes["class"]))
    if plan.merge and not plan.min_count:
        raise PlanError("merge needs min_count above 0: without it no class is rare")


def _check_pairs(merge: Mapping[int, int], classes: range) -> None:
    for child, parent in merge.items():
        if child not in classes or parent not in classes or child == parent:
            raise PlanError(
                f"merge must map a class to another class in 0..{len(classes) - 1}, got {child} -> {parent}"
            )
        if parent in merge:
            raise PlanError(f"merge maps {child} to {parent}, which is itself merged; name a parent that stays")


def check_size(layout: Layout, schema: Schema) -> None:
    """Refuse a vector too large for one client to hold, mask and send."""
    size = 8 * layout.size
    if size <= MAX_VECTOR_BYTES:
        return
    largest = max(layout.segments, key=lambda segment: segment.size)
    raise PlanError(
        f"every client would hold a vector of {size:,} bytes, maximum {MAX_VECTOR_BYTES:,}: "
        f"{largest.name} alone has {largest.size:,} entries; {_remedy(schema, largest.statistic)}"
    )


def _remedy(schema: Schema, statistic: str) -> str:
    row = by_letter(schema.table, statistic)[0]
    axes = dict.fromkeys(axis for axis in (*reversed(row.axes), row.partition) if axis != "pooled")
    *several, last = [field for axis in axes for field in _GROWS_WITH[axis]] or ["the number of statistics"]
    exclude = ", or omit B and S" if statistic in schema.optional and statistic in ("B", "S") else ""
    return f"lower {', '.join(several)}{' or ' if several else ''}{last}{exclude}"


_GROWS_WITH = {
    "feature": ("features (project first)",),
    "class": ("classes",),
    "target": ("targets",),
    "fold": ("folds",),
    "pull": ("pulls", "groups"),
    "cell": ("the cells of its tables",),
    "block": ("groups, or the subgroups",),
    "temperature": ("the number of temperatures",),
    "power": (),
    "exclusion": (),
}
"""The fields to lower, for every axis and every kind of cell that a statistic can have."""


def check_masking(masking: Masking, noise: Noise | None) -> None:
    """Refuse masking whose failure probability is not far below the promised delta.

    ``masking.failure`` bounds the probability that masking reveals more than the sum; its limit is ``noise.delta /
    100``, or 2**-38 without DP.
    """
    failure = masking.failure
    limit = _WITHOUT_DP if noise is None else noise.delta * _PART_OF_DELTA
    if failure <= limit:
        return
    bound = "2^-38" if noise is None else f"delta / 100 = {at_least(limit, '.2g')}"
    raiser = "" if noise is None else f"raise privacy.delta to at least {at_most(failure / _PART_OF_DELTA, '.2g')}, "
    raise PlanError(
        f"masking may fail with probability {at_most(failure, '.2g')}, maximum {bound}: {raiser}{masking.remedy}"
    )


def check_local_maps(schema: Schema, privacy: Privacy | NoPrivacy) -> None:
    """Refuse a promise per record or person after a map fitted on the client's own records."""
    local = [map_.kind for map_ in schema.transform if map_.local]
    if local and isinstance(privacy, Privacy) and privacy.unit != "client":
        raise PlanError(
            f"transform {local[0]!r} is fitted on each client's own records, so one record moves the features of all "
            'of them, and no useful bound is known for that: set unit="client", NoPrivacy(), or omit the map'
        )


def check_scorer(schema: Schema, privacy: Privacy | NoPrivacy, published: Published | None) -> None:
    """Refuse to score a published head by another package's code under a promise, whose claim does not name it."""
    if not schema.scores_head or isinstance(privacy, NoPrivacy) or published is None or published.values is None:
        return
    from privstats.kinds.scorers import scored_by
    from privstats.kinds.scoring import bytes_of

    if package := scored_by(schema.task, bytes_of(published.values)):
        raise PlanError(
            f"{package} would score each record under the published head, and no claim on a plan names that package: "
            "under a promise publish a head whose class and rule are of privstats"
        )


def _check_values(schema: Schema, published: object) -> None:
    from privstats.schema.public_values import Published

    if not isinstance(published, Published):
        raise PlanError(f"published must be Published values, got {type(published).__name__}; use Published.of")
    if published.values is not None:
        schema.check_values(published.values)


def check_excess(plan: Plan) -> None:
    """Refuse to remove excess noise without noise, or where clients do not know the number of survivors."""
    if plan.excess_noise == EXCESS_KEPT:
        return
    if isinstance(plan.privacy, NoPrivacy) or not plan.privacy.trust.divided:
        raise PlanError("excess_noise='removed' needs shares of noise: choose model='distributed', or omit it")
    if not PROTOCOLS[plan.protocol].agrees:
        raise PlanError(
            "excess_noise='removed' needs clients that agree on who is in the sum: choose protocol='interactive', or "
            "model='panel', whose noise does not depend on how many clients stay"
        )
    if plan.cohort.min_survivors == plan.cohort.clients:
        raise PlanError(
            "excess_noise='removed' has nothing to remove: all clients must survive, so no share is sized for fewer; "
            "omit it, or lower cohort.min_survivors"
        )
