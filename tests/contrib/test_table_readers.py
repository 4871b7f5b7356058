"""Readers of tables that rooms of contrib announce refuse before a session what they would refuse after it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.imputation import by_gaps
from privstats.contrib.site_levels import site_round
from privstats.errors import PlanError, ReleaseError
from privstats.plug_ins import announced
from privstats.schema.public_values import Published
from privstats.workflows.tables import READERS, read
from tests.contrib.imputation import cases, counts
from tests.contrib.site_levels import test_logit as odds
from tests.contrib.site_levels import test_table as linear
from tests.contrib.site_levels.test_logit import pooled, release
from tests.workflows.test_plans_and_readers import ONE, STUDIES, TERMS, Study, planned, walk

__all__ = ["pooled", "release"]

BROUGHT = tuple(entry.name for entry in announced(READERS.group))


def _patterns(count: int) -> tuple[Any, Any]:
    return by_gaps(cases.schema(), cases.table(count))


def _by_site(count: int) -> tuple[Any, Any]:
    """Records of twenty sites, in turn."""
    X, y = linear.records()
    places = np.arange(len(y)).reshape(linear.SITES, -1).T.ravel()[:count]
    return X[places], y[places]


def _but_one(count: int) -> tuple[Any, Any]:
    X, y = _by_site(count)
    return X[:, :-1], y


def _with_gaps(count: int) -> tuple[Any, None]:
    return {name: np.array(values, object) for name, values in counts.records(count).items()}, None


THREE = ps.Categories("stage", ("a", "b", "c"))
OF_CONTRIB = (
    planned("patterns of gaps", cases.schema(), _patterns),
    planned("counts with gaps", counts.SCHEMA, _with_gaps),
    planned("columns by site", linear.schema(), _by_site),
    planned("columns by site and a constant", linear.schema(transform=ONE, feature_names=linear.NAMES[:-1]), _but_one),
    planned("columns by site without names", linear.schema(feature_names=None), _by_site),
)


def asked(name: str, schema: Any) -> dict[str, Any]:
    """What a user must name, so that the reader can be called at all."""
    if name == "site-levels":
        return {} if schema.task == "score" else {"columns": [*(schema.feature_names or ("x0",))[:2]]}
    if schema.task == "classes":
        return {"outcome": (schema.feature_names or ("x0",))[-1]}
    table = max(schema.tables, key=len)
    outcome = next((each for each in table if len(schema.variable(each).cells) == 2), table[0])
    return {"outcome": outcome, "columns": [each for each in table if each != outcome] or None}


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("study", [*STUDIES, *OF_CONTRIB], ids=lambda study: study.name)
def test_a_reader_takes_after_a_session_exactly_what_its_plan_lets_it(study: Study, terms: str) -> None:
    """Both refused after a session alone: nothing was asked of their plans."""
    walk(study, terms, BROUGHT, asked)


def test_each_is_tried_where_it_reads_and_where_it_refuses() -> None:
    found = {name: set[bool]() for name in BROUGHT}
    for study in (*STUDIES, *OF_CONTRIB):
        try:
            started = study.start(ps.NoPrivacy())
        except (PlanError, ReleaseError):
            continue
        plan = started if isinstance(started, ps.Plan) else started.priced[-1]
        for name in BROUGHT:
            found[name] |= {READERS[name].accepts(plan)} if READERS[name].fits(plan.schema) else set()
    assert found == {name: {True, False} for name in BROUGHT}


def test_a_round_by_site_is_taken_before_and_after(pooled: Any, release: ps.Release) -> None:
    row = READERS["site-levels"]
    plan = site_round(pooled, schema=odds.OWN, sites=odds.ALL, **odds.terms())
    assert row.accepts(plan)
    assert read("site-levels", [*pooled, release], exponentiate=True).rows[0]["term"] == "age"
    assert "the transform must hold no ConstantFeature" in row.refusal(pooled[-1].plan)
    assert "the plan follows no rounds" in row.refusal(replace(plan, published=Published("1" * 64)))
