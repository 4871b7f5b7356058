"""Count one party's records under a part of a promise, so that no number in a course's plans is read off them."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from privstats.course.alone import charge_for, private_release, single_party_plan
from privstats.course.promise import part_of
from privstats.errors import PlanError
from privstats.heads.private import FitPromise, OwnRecords
from privstats.heads.provenance import ROW_TABLES
from privstats.kinds import CountSchema
from privstats.moments import exact_moments
from privstats.release import Release
from privstats.schema import Bins, Schema

COUNT_SHARE = 1 / 64
"""The count's part of mu^2: its noise deviation is 8 / mu."""
_SCHEMA = CountSchema((Bins("records", (-1.0, 0.0, 1.0)),), ROW_TABLES)
"""Every record has the value 0, so all are in the second cell."""
_CELL, _FRESH_RUN_BYTES = 1, 16


def counted_first(promise: FitPromise, schema: Schema, records: OwnRecords) -> tuple[FitPromise, Release] | None:
    """Charge a promise, release a noisy count of the records under 1/64 of its mu^2, and return the terms of the rest.

    Args:
        promise: of one call, under ``"add-remove"``.
        schema: of the sums that follow, under which unreadable records are refused before anything is spent.

    Returns:
        None where the promise, which is public, is too small for a count and rounds; nothing is spent then.

    Guarantee:
        The count and a course under the returned terms are together mu-GDP with the promise's mu, for one record under
        ``"add-remove"``: one record changes the count by 1, later plans follow from the noisy count and public numbers,
        and squared mu add up for releases chosen by earlier ones (Dong, Roth, Su 2019). The ledger has one entry, with
        the complete promise, before any noise is drawn.
    """
    plan = single_party_plan(schema, promise.privacy, max_records=promise.max_records)
    try:
        part_of(plan, COUNT_SHARE / 2, None)
    except PlanError:
        return None
    given, rest = part_of(plan, COUNT_SHARE, None), part_of(plan, 1 - COUNT_SHARE, None)
    exact_moments(schema, records.X, records.y)
    if (charge := charge_for(promise.ledger, promise.dataset)) is not None:
        charge.spend(plan, os.urandom(_FRESH_RUN_BYTES))
    release = private_release(_SCHEMA, given, {"records": np.zeros(records.count)}, ledger="uncharged")
    terms: Any = {"expected_records": rows_of(release), "ledger": "uncharged", "dataset": None}
    return replace(promise, epsilon=rest.epsilon, **terms), release


def rows_of(release: Release) -> int:
    """Return the number of records that a released count states: at least one noise deviation, and at least 1."""
    real: Any = release.moments
    return max(1, math.ceil(max(float(real.T[_CELL]), float(release.sigma["T"]))))
