"""A level of ``[validity]`` comes through a door with its words, and a plan without its prover is refused by name."""

import warnings
from dataclasses import replace

import pytest

import privstats as ps
from privstats.contrib.proofs import of_plans
from privstats.contrib.proofs.claims import Claim
from privstats.contrib.proofs.levels import MOMENTS, NORM
from privstats.encoding import Ring
from privstats.errors import PlanError
from privstats.kinds import KINDS
from privstats.plan import Validity
from privstats.plan.provers import PROVERS, Prover, level_for
from privstats.review import facts
from tests.contrib.proofs.test_validity import proved
from tests.planted import plant_entries
from threat_models.attacks.poisoned_sums import PoisonedSums

pytestmark = pytest.mark.filterwarnings("ignore:validity is experimental")
TWICE = replace(MOMENTS, level="twice", meaning="its sums are of at most {max_records} records, twice", experimental="")
NAMED = "its sums are of at most {} fractional records within the schema's bounds, class by class"


@pytest.fixture
def brings(monkeypatch):
    """Let packages announce these provers, and no other one."""

    def bring(**rows: str) -> None:
        plant_entries(monkeypatch, PROVERS.group, rows, alone=True)

    return bring


def test_a_level_of_another_package_is_a_word_of_plans_with_its_meaning(brings, monkeypatch):
    brings(twice=f"{__name__}:TWICE", moments="privstats.contrib.proofs.levels:MOMENTS")
    with warnings.catch_warnings(action="error"):  # its argument is settled
        plan = proved(validity=Validity("twice", 9))
    assert ps.Plan.from_toml(plan.to_toml()).digest == plan.digest
    assert plan.masking.statement.name == proved(validity=Validity("moments", 9)).masking.statement.name
    said = f"{__name__}:TWICE (no package) states: every client proves that its sums are of at most 9 records, twice"
    assert said in facts(plan)
    refused = PoisonedSums().refusal(plan)
    assert refused == "knows the lies that norm and moments admit, and the plan proves twice"
    assert f"EXPERIMENTAL: every client proves that {NAMED.format(9)}; no outside reader has verified" in "".join(
        facts(proved(validity=Validity("moments", 9)))
    )


def test_a_plan_without_its_prover_is_refused_by_name(brings):
    text = proved(validity=Validity("norm", 9)).to_toml()
    brings()
    with pytest.raises(PlanError, match="validity.level needs the prover 'norm', which no installed .* or omit"):
        ps.Plan.from_toml(text)


@pytest.mark.parametrize("row", [MOMENTS, NORM])
def test_each_level_proves_statements_that_kinds_have(row: Prover) -> None:
    stated = {name for kind in KINDS.values() for name in kind.statements}
    assert set(row.statements) <= stated & set(of_plans._STATEMENTS)
    assert PROVERS[row.level] is row


@pytest.mark.parametrize("level", ["moments", "norm"])
@pytest.mark.parametrize(("task", "expected"), [("counts", "moments"), ("gradients", "norm"), ("mean", None)])
def test_a_further_session_is_proved_at_a_level_that_has_a_statement(level, task, expected):
    """Counts are proved cell by cell and gradients by their norms, whatever the first session proves."""
    assert level_for(level, KINDS[task].statements) == (expected or level)


def test_a_claim_refuses_a_group_that_is_not_its_field() -> None:
    plan = proved()
    assert isinstance(plan.claim, Claim)
    with pytest.raises(TypeError, match="reads vectors over its field, got a Ring"):
        plan.claim.scheme(Ring(((plan.layout.size, 8),)), 1, b"")
