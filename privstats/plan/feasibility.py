"""Refuse plans with fields that contradict each other, and plans that must not run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from privstats.dp import Noise, NoPrivacy, Privacy
from privstats.encoding import Layout
from privstats.errors import PlanError
from privstats.files.signing import require_order
from privstats.plan.cohort import Cohort
from privstats.schema import USUAL, Schema, is_known
from privstats.schema.base import by_letter
from privstats.secagg.keys import KEY_AGREEMENTS
from privstats.secagg.machines import Masking
from privstats.secagg.protocols import PROTOCOLS

MAX_VECTOR_BYTES = 1 << 32
"""Largest flat vector of 64-bit integers, in bytes, under any protocol; ``split`` limits its packed form, too."""

_MAX_SPARE_BITS = 32
_PART_OF_DELTA = 0.01
# Above the sum of three bounds of 2**-40 each.
_WITHOUT_DP = 2.0**-38


def check_kinds(
    schema: object,
    cohort: object,
    privacy: object,
    graph: object,
    spare_bits: object,
    validity: object,
    devices: object,
) -> None:
    """Refuse fields of the wrong type."""
    if not is_known(schema):
        raise PlanError(f"schema must be a {USUAL}, got {type(schema).__name__}")
    rows: tuple[tuple[str, object, tuple[type, ...], str], ...] = (
        ("cohort", cohort, (Cohort,), "Cohort"),
        ("privacy", privacy, (Privacy, NoPrivacy), "Privacy or NoPrivacy"),
        *_sections(Validity=validity, Devices=devices),
    )
    for name, value, kinds, wanted in rows:
        if type(value) not in kinds:  # a subclass would share its digest
            raise PlanError(f"{name} must be a {wanted}, got {type(value).__name__}")
    # The protocol refuses a graph that it does not have.
    if not isinstance(graph, str) or not graph.isascii():
        raise PlanError(f"graph must be an ASCII name, for example 'auto', got {ascii(graph)[:40]}")
    if type(spare_bits) is not int or not 0 <= spare_bits <= _MAX_SPARE_BITS:
        raise PlanError(f"spare_bits must be an integer from 0 to {_MAX_SPARE_BITS}, got {spare_bits!r}")


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


def checked_panel(protocol: object, panel: object) -> tuple[str, ...]:
    """Return a plan's validated panel: empty, or the different identities that the protocol needs."""
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise PlanError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    if not isinstance(panel, list | tuple) or not all(map(_is_identity, panel)):
        raise PlanError(
            "panel must be a list of Ed25519 public keys, 64 lower-case hex digits each, the leader's first: list "
            "identity.public.hex() of each, or what `privstats identity show NAME.pub` prints"
        )
    for place, key in enumerate(panel):
        require_order(bytes.fromhex(key), f"panel[{place}]", PlanError)
    if len(set(panel)) != len(panel):
        raise PlanError("panel names one identity twice; leader and helpers must be different parties")
    has_panel = PROTOCOLS[protocol].has_panel
    if panel and not has_panel:
        with_panel = " or ".join(repr(name) for name, row in PROTOCOLS.items() if row.has_panel)
        raise PlanError(f"protocol={protocol!r} has no helpers: omit panel, or choose protocol={with_panel}")
    if has_panel and len(panel) < 2:
        raise PlanError(f"protocol={protocol!r} needs a panel: the leader's identity and at least one helper's")
    return tuple(panel)


def check_key_agreement(key_agreement: object, protocol: str) -> None:
    """Refuse a key agreement that is unknown or missing in the plan's protocol."""
    if not isinstance(key_agreement, str) or key_agreement not in KEY_AGREEMENTS:
        raise PlanError(f"key_agreement must be one of {', '.join(KEY_AGREEMENTS)}, got {key_agreement!r}")
    offered = PROTOCOLS[protocol].key_agreements
    if key_agreement not in offered:
        raise PlanError(
            f"protocol={protocol!r} has no version with key_agreement={key_agreement!r} yet: choose "
            f"{' or '.join(offered)}, or another protocol"
        )


def check_noise(privacy: Privacy | NoPrivacy, protocol: str) -> None:
    """Refuse a panel's noise under a protocol without a panel."""
    if isinstance(privacy, NoPrivacy) or privacy.trust.drawn_by != "member" or PROTOCOLS[protocol].has_panel:
        return
    with_panel = " or ".join(repr(name) for name, row in PROTOCOLS.items() if row.has_panel)
    raise PlanError(
        f"model={privacy.model!r} is noise of a leader and helpers, and protocol={protocol!r} has none: choose "
        f"protocol={with_panel} with a panel, or another model"
    )


def _is_identity(key: object) -> bool:
    return isinstance(key, str) and len(key) == 64 and set(key) <= set("0123456789abcdef")


def check_min_count(schema: Schema, cohort: Cohort, min_count: object, merge: Any) -> None:
    """Refuse a minimum count, or classes to merge, that no release could satisfy."""
    if isinstance(min_count, bool) or not isinstance(min_count, int) or min_count < 0:
        raise PlanError(f"min_count must be an integer of at least 0, got {min_count!r}")
    if not schema.suppressible:
        if min_count or merge:
            raise PlanError(f"min_count and merge are about classes; a {schema.task} plan has none, so omit them")
        return
    if min_count > cohort.max_records:
        raise PlanError(
            f"min_count={min_count} exceeds cohort.max_records={cohort.max_records}, so no class can have "
            f"{min_count} records; lower min_count"
        )
    _check_merge(merge, range(schema.sizes["class"]))
    if merge and not min_count:
        raise PlanError("merge needs min_count above 0: without it no class is rare")


def _check_merge(merge: Any, classes: range) -> None:
    numbers = isinstance(merge, Mapping) and all(type(value) is int for pair in merge.items() for value in pair)
    if not numbers:
        raise PlanError("merge must map a class to another class by their numbers, for example merge={3: 0}")
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
    axes = dict.fromkeys(axis for axis in (*reversed(row.axes), row.cells) if axis != "pooled")
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
    bound = "2^-38" if noise is None else f"delta / 100 = {limit:.2g}"
    raiser = "" if noise is None else f"raise privacy.delta to at least {_rounded_up(failure / _PART_OF_DELTA):.2g}, "
    raise PlanError(f"masking may fail with probability {failure:.2g}, maximum {bound}: {raiser}{masking.remedy}")


def check_local_maps(schema: Schema, privacy: Privacy | NoPrivacy) -> None:
    """Refuse a promise per record or person after a map fitted on the client's own records."""
    local = [step.kind for step in schema.transform if step.local]
    if local and isinstance(privacy, Privacy) and privacy.unit != "client":
        raise PlanError(
            f"transform {local[0]!r} is fitted on each client's own records, so one record moves the features of all "
            'of them, and no useful bound is known for that: set unit="client", NoPrivacy(), or omit the map'
        )


def _rounded_up(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def _sections(**values: object) -> Iterator[tuple[str, object, tuple[type, ...], str]]:
    from privstats import plan

    for name, value in values.items():
        if value is not None:
            yield name.lower(), value, (getattr(plan, name),), f"{name} or None"


def _check_values(schema: Schema, published: object) -> None:
    from privstats.schema.public_values import Published

    if not isinstance(published, Published):
        raise PlanError(f"published must be Published values, got {type(published).__name__}; use Published.of")
    if published.values is not None:
        schema.check_values(published.values)


EXCESS_KEPT = "kept"
EXCESS = EXCESS_KEPT, "removed"
"""Values of ``excess_noise``: what happens to the noise of survivors beyond the minimum."""


def check_excess(excess_noise: object, privacy: Privacy | NoPrivacy, cohort: Cohort, agrees: bool) -> None:
    """Refuse to remove excess noise without noise, or where clients do not know the number of survivors."""
    if excess_noise not in EXCESS:
        raise PlanError(f"excess_noise must be one of {', '.join(EXCESS)}, got {excess_noise!r}")
    if excess_noise == EXCESS_KEPT:
        return
    if isinstance(privacy, NoPrivacy) or not privacy.trust.divided:
        raise PlanError("excess_noise='removed' needs shares of noise: choose model='distributed', or omit it")
    if not agrees:
        raise PlanError(
            "excess_noise='removed' needs clients that agree on who is in the sum: choose protocol='interactive', or "
            "model='panel', whose noise does not depend on how many clients stay"
        )
    if cohort.min_survivors == cohort.clients:
        raise PlanError(
            "excess_noise='removed' has nothing to remove: all clients must survive, so no share is sized for fewer; "
            "omit it, or lower cohort.min_survivors"
        )
