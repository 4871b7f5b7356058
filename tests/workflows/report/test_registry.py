"""A registry's entry has the registry's fields and the plan's numbers, and marks what only people know."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import privstats as ps
from privstats.dp.models import MODELS
from privstats.errors import PlanError
from privstats.workflows.report import Statement, registry_entry
from privstats.workflows.report.registry import TO_WRITE

PROMISE = {"adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5}
SCHEMA = ps.ClassSchema(3, 4, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
CENTRAL = ps.Privacy(model="central", unit="record", **PROMISE)
PANEL = tuple(ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2))

SECTIONS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type "
    "access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
"""Names of the registry's schema at its commit 3e9c812 of 2026-07-15; it admits no others."""
WORDS = {
    "data_product_type": {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data"},
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static", "Dynamic"},
    "access_type": {"Interactive", "Non-interactive"},
}


def of_schema():
    """The registry's schema, as JSON Schema: names, types, words."""
    lists = {"data_curators", "registry_authors"}

    def field(name):
        if name in lists:
            return {"type": "array", "items": {"type": "string"}, "minItems": 1}
        if name == "privacy_parameters":
            return closed({"epsilon": {"type": "number"}, "delta": {"type": "number"}, "rho": {"type": "number"}})
        if name in WORDS:
            return {"enum": sorted(WORDS[name])}
        return {"type": "string", **({"pattern": r"^\d{4}-\d\d-\d\d$"} if name == "publication_date" else {})}

    def closed(properties, required=()):
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": properties,
            "required": list(required),
        }

    required = {"basic": SECTIONS["basic"].split(), "administrative": ["registry_authors"]}
    sections = {
        name: closed({each: field(each) for each in fields.split()}, required.get(name, ()))
        for name, fields in SECTIONS.items()
    }
    head = {"url_slug": {"type": "string"}, "status": {"enum": ["Draft"]}, "tier": {"enum": [1, 2, 3]}}
    return closed({**head, "deployment": closed(sections, ["basic"])}, [*head, "deployment"])


def plan(privacy=CENTRAL, **changes):
    return ps.Plan(schema=SCHEMA, cohort=ps.Cohort(4, 3, 1_000), privacy=privacy, **changes)


STATEMENTS = {
    "central": Statement(plan()),
    "distributed": Statement(plan(ps.Privacy(model="distributed", unit="record", **PROMISE))),
    "local": Statement(plan(ps.Privacy(model="local", unit="record", **PROMISE))),
    "panel": Statement(
        plan(ps.Privacy(model="panel", unit="record", **PROMISE), protocol="split", panel=PANEL),
    ),
    "client": Statement(plan(ps.Privacy(model="central", unit="client", max_records_per_client=9, **PROMISE))),
    "min_count": Statement(plan(min_count=5)),
    "rounds": Statement(plan(), course=ps.Rounds(plan())),
    "stream": Statement(plan(), course=ps.Stream(plan(), 4)),
    "release": Statement(plan(), ps.simulate(plan(), [(np.eye(4), np.arange(4) % 3)] * 4)),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", STATEMENTS)
def test_an_entry_validates_against_the_registrys_schema(name):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(json.dumps(registry_entry(STATEMENTS[name]))), of_schema())


def of(name):
    return registry_entry(STATEMENTS[name])["deployment"]


def test_the_numbers_are_the_plans_and_the_courses():
    assert of("central")["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-5}
    course = STATEMENTS["rounds"].course
    whole = of("rounds")["privacy_loss"]["privacy_parameters"]["epsilon"]
    assert whole == pytest.approx(ps.dp.gaussian_epsilon(course.mu, 1e-5))
    assert whole > 1.0
    assert of("client")["privacy_loss"]["privacy_unit"] == "client-level"
    sigma = plan().noise.sigma["A"]
    assert f"A {sigma:.4g}" in of("central")["implementation"]["mechanisms"]


def test_the_words_are_the_deployments():
    models = {name: of(name)["deployment_model"]["model_name"] for name in MODELS}
    assert models == {"central": "Central", "distributed": "Federated", "local": "Local", "panel": "Federated"}
    kinds = {name: of(name)["deployment_model"] for name in ("central", "rounds", "stream")}
    assert [each["release_type"] for each in kinds.values()] == ["One release", "Many releases", "Many releases"]
    assert [each["data_source_type"] for each in kinds.values()] == ["Static", "Static", "Dynamic"]
    assert "below 5 are left out" in of("min_count")["accounting"]["post_processing"]
    notes = of("release")["administrative"]["notes"]
    assert STATEMENTS["release"].release.digest in notes
    assert STATEMENTS["rounds"].course.digest in of("rounds")["administrative"]["notes"]


def test_what_only_people_know_is_marked():
    marked = {
        field
        for section in of("central").values()
        for field, value in section.items()
        if TO_WRITE in (value[0] if isinstance(value, list) else str(value))
    }
    assert marked == {
        "name",
        "data_curators",
        "intended_use",
        "data_product_region",
        "preprocessing_and_hyperparameter_tuning",
        "justification",
        "sources",
        "registry_authors",
    }


def test_a_plan_without_a_promise_has_no_entry():
    with pytest.raises(PlanError, match="is no deployment of it"):
        registry_entry(Statement(plan(ps.NoPrivacy())))


def test_the_command_writes_the_entry_with_or_without_the_page(privstats, tmp_path):
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    done = privstats("report", "plan.toml", "--registry", "entry.json", cwd=tmp_path)
    assert (done.returncode, "TO BE WRITTEN" in done.stdout) == (0, True), done.stderr
    entry = json.loads((tmp_path / "entry.json").read_text())
    assert entry["url_slug"] == f"privstats-{plan().digest[:16]}"
    assert not (tmp_path / "report.html").exists()
    nothing = privstats("report", "plan.toml", cwd=tmp_path)
    assert (nothing.returncode, "--registry, or both" in nothing.stderr) == (2, True)
