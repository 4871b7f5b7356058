"""Derive a session's claim from its plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from privstats.contrib.proofs.claims import Claim, statement_of
from privstats.dp import NoPrivacy, Privacy
from privstats.encoding import Layout, layout_of
from privstats.errors import PlanError
from privstats.extend.plans import PROTOCOLS
from privstats.kinds import ClassSchema, CountSchema, RidgeSchema, ScoringSchema
from privstats.plan import Cohort, Validity
from privstats.schema import COUNT_SCALE, Schema

_LEAST_GRID_BITS = 6  # a count's 4,096 steps must divide 4**grid_bits
_MOST_ENTRIES = 1_000_000
_MOST_CELLS = 10_000  # each costs a member some 70 microseconds for every report
_MOST_HIDDEN = 512  # features of N and A alone: a client proves them with a second moment, which it does not send
_SMALL = 1 / 10  # limit on a claim's tolerance, as a share of its records


def claim_of(
    proved: tuple[str, ...],
    validity: Validity,
    schema: Schema,
    cohort: Cohort,
    privacy: Privacy | NoPrivacy,
    protocol: str,
    spare_bits: int,
) -> Claim:
    """Return a session's claim; raise ``PlanError`` with a remedy.

    Args:
        proved: names of the statements that the level proves.
    """
    _check_setting(privacy, protocol, spare_bits)
    _check_length(layout_of(schema))
    _check_records(validity, cohort, privacy)
    clipped = isinstance(privacy, Privacy) and privacy.client_clip is not None
    named = next((name for name in schema.statements if name in proved), None)
    statement = _NONE.get(validity.level, _no_moments) if named is None else _STATEMENTS[named]
    return _with_room(statement(schema, validity, clipped), schema)


def _check_setting(privacy: Privacy | NoPrivacy, protocol: str, spare_bits: int) -> None:
    if not PROTOCOLS[protocol].has_panel:
        with_panel = " or ".join(repr(name) for name, row in PROTOCOLS.items() if row.has_panel)
        raise PlanError(
            f"validity is proved to a leader and helpers, and protocol={protocol!r} has none: choose "
            f"protocol={with_panel} with a panel, or omit validity"
        )
    if isinstance(privacy, Privacy) and privacy.trust.drawn_by == "client":
        raise PlanError(
            f"a client cannot prove a vector with its own noise, which model={privacy.model!r} adds: choose "
            "model='panel' or 'central', or omit validity"
        )
    if isinstance(privacy, Privacy) and privacy.unit == "person":
        raise PlanError(
            "no statement covers sums of persons, whose counts need not be integers and whose ids no report may "
            "hold: omit validity, or promise records or clients"
        )
    if spare_bits:
        raise PlanError("a stream weighs sums, which the group of proved sums does not allow: omit validity")


def _check_length(layout: Layout) -> None:
    """Refuse a vector that is too long, before computing anything that grows with it."""
    if layout.size > _MOST_ENTRIES:
        raise PlanError(
            f"validity is proved of at most {_MOST_ENTRIES:,} entries, and this vector has {layout.size:,}; lower "
            "features, or omit validity"
        )


def _check_records(validity: Validity, cohort: Cohort, privacy: Privacy | NoPrivacy) -> None:
    most, least = validity.most_records, 1
    if isinstance(privacy, Privacy) and privacy.max_records_per_client is not None:
        least = privacy.max_records_per_client
    if most > cohort.max_records:
        raise PlanError(
            f"validity.most_records={most} exceeds cohort.max_records={cohort.max_records}, which all clients hold "
            "together; lower most_records"
        )
    if most < least:
        raise PlanError(
            f"validity.most_records={most} is below privacy.max_records_per_client={least}, so an honest client could "
            "not prove its sums; raise most_records"
        )


def _check_grid(schema: Schema) -> None:
    if schema.grid_bits < _LEAST_GRID_BITS:
        raise PlanError(
            f"validity needs schema.grid_bits of at least {_LEAST_GRID_BITS}, got {schema.grid_bits}: below it a "
            "count has no integer unit in the field; raise it"
        )


def _classes(schema: ClassSchema, validity: Validity, clipped: bool) -> Claim:
    _check_grid(schema)
    letters, numbers = schema.statistics, (4**schema.grid_bits, validity.most_records, schema.grid_bits)
    if letters == "NAB":
        return Claim("classes", (schema.classes, schema.features), *numbers, clipped=clipped)
    if letters == "NA" and not clipped and schema.features <= _MOST_HIDDEN:
        return Claim("class means", (schema.classes, schema.features), *numbers)
    if letters == "NAS" and not clipped:
        return Claim("classes apart", (schema.classes, schema.features), *numbers)
    return _no_moments(schema, validity, clipped)


def _folds(schema: RidgeSchema, validity: Validity, clipped: bool) -> Claim:
    _check_grid(schema)
    if clipped:
        return _no_moments(schema, validity, clipped)
    sizes = (schema.features, schema.targets, schema.folds)
    return Claim("folds", sizes, 4**schema.grid_bits, validity.most_records, schema.grid_bits)


def _no_moments(schema: Schema, _: Validity, clipped: bool) -> NoReturn:
    _check_grid(schema)
    clip = " under privacy.client_clip" if clipped else ""
    raise PlanError(
        f"validity.level='moments' has no statement about task={schema.task!r} with statistics {schema.statistics!r}"
        f"{clip}, only about classes with 'NAB' (also under client_clip), 'NAS', or 'NA' of at most {_MOST_HIDDEN} "
        "features, ridge, and counts; change the schema, or use level='norm' for gradients or classes without T and F"
    )


def _norms(schema: Schema, validity: Validity, clipped: bool) -> Claim:  # noqa: ARG001  a clip lowers every norm
    _check_grid(schema)
    unread = " and ".join(row.letter for row in schema.sent if row.degree > 2)
    if unread:
        raise PlanError(f"validity.level='norm' has no statement about {unread}: omit validity")
    sizes = {row.letter: row.blocks(schema.sizes) * row.entries(schema.sizes) for row in schema.sent}
    kappa = (sizes["g"],) if "g" in sizes else ()
    unit = 4**schema.grid_bits
    return Claim("norms", tuple(sizes.values()), unit, validity.most_records, schema.grid_bits, kappa)


def _no_norms(schema: Schema, _: Validity, __: bool) -> NoReturn:
    if "tables" in schema.statements:
        raise PlanError("counts are proved cell by cell: choose validity.level='moments'")
    _check_grid(schema)
    raise PlanError(f"validity.level='norm' has no statement about task={schema.task!r}: omit validity")


def _tables(schema: CountSchema | ScoringSchema, validity: Validity, clipped: bool) -> Claim:
    if len(schema.statistics) > 1:
        raise PlanError("validity has no statement about numbers of a CountSchema: omit one of them")
    cells = tuple(math.prod(schema.shape(table)) for table in schema.tables)
    if sum(cells) > _MOST_CELLS:
        raise PlanError(
            f"validity is proved of at most {_MOST_CELLS:,} cells, and these tables have {sum(cells):,}; omit "
            "tables, or validity"
        )
    unit, most = (1, COUNT_SCALE * validity.most_records) if clipped else (COUNT_SCALE, validity.most_records)
    return Claim("tables", cells, unit, most, clipped=clipped)


_STATEMENTS: Mapping[str, Callable[[Any, Validity, bool], Claim]] = {
    "classes": _classes,
    "folds": _folds,
    "tables": _tables,
    "norms": _norms,
}
"""Statements by the name in ``Schema.statements``."""
_NONE: Mapping[str, Callable[[Schema, Validity, bool], NoReturn]] = {"moments": _no_moments, "norm": _no_norms}


def _with_room(claim: Claim, schema: Schema) -> Claim:
    if _fits(claim):
        return _check_tolerance(claim)
    least, beyond = 0, claim.most_records
    while beyond - least > 1:
        middle = (least + beyond) // 2
        least, beyond = (middle, beyond) if _fits(replace(claim, most_records=middle)) else (least, middle)
    records = least // COUNT_SCALE if claim.sums == "tables" and claim.unit == 1 else least
    where = f" at grid_bits={schema.grid_bits}" if claim.grid_bits else ""
    raise PlanError(
        f"validity.most_records is too large for the field of the proofs: at most {records}{where}; lower it"
        + (", or grid_bits" if claim.grid_bits > _LEAST_GRID_BITS else "")
    )


def _check_tolerance(claim: Claim) -> Claim:
    loose, most = claim.tolerance, max(1.0, _SMALL * claim.most_records)
    if loose > most:
        raise PlanError(
            f"on so coarse a grid proofs allow {loose:.3g} records beyond "
            f"validity.most_records={claim.most_records}, and {most:.3g} is the limit; raise schema.grid_bits"
        )
    return claim


def _fits(claim: Claim) -> bool:
    try:
        return bool(statement_of(claim))
    except PlanError:
        return False
