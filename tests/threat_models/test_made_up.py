"""Audits make their records up, so nobody is asked to correct them."""

import ast
import warnings
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.errors import ClippedWarning, UnreadableRecordsWarning
from privstats.workflows.report import Search
from tests.made import promise
from tests.schema.samples import PROMISED
from threat_models import findings

ROOT = Path(__file__).parents[2] / "threat_models"
BROUGHT = {"made_up.py", "audits/known_inputs.py"}
"""The one door, and what reads files of real inputs."""


def test_every_made_up_record_is_measured_through_one_door() -> None:
    measuring = set()
    for path in ROOT.rglob("*.py"):
        names = {
            getattr(node.func, "id", "")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
        }
        if names & {"exact_moments", "measure"}:
            measuring.add(str(path.relative_to(ROOT)))
    assert measuring == BROUGHT


@pytest.mark.parametrize("schema", PROMISED, ids=lambda each: each.task)
def test_an_audit_warns_nobody_of_its_own_records(schema: Any) -> None:
    unit = "client" if schema.refusal("record") else "record"
    try:
        terms = {"max_records_per_client": 9} if unit == "client" else {}
        plan = ps.Plan(schema=schema, cohort=ps.Cohort(4, 3, 300), privacy=promise(unit=unit, **terms))
        with warnings.catch_warnings():
            for category in (ClippedWarning, UnreadableRecordsWarning):
                warnings.simplefilter("error", category)
            findings.audits(plan, Search(seed=1, trials=100))
    except ps.errors.PrivstatsError as refusal:
        pytest.skip(str(refusal))
