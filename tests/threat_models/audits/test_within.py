"""The search over clients and newcomers comes near the claimed sensitivity and never beyond it."""

from dataclasses import replace
from typing import Any

import pytest

import privstats as ps
from tests import made
from tests.contrib.alignment.cohort import PROMISE, PUBLIC, first
from tests.schema.changed import change_kind
from threat_models.audits.target import target_of
from threat_models.audits.within import audit_within


def plan(pull: float = 10.0, n_max: int = 40) -> ps.Plan:
    return made.plan(
        ps.WithinSchema(3, 4, 2.0, pull=pull, n_max=n_max), ps.Cohort(4, 3, 200), made.promise(epsilon=2.0)
    )


def found(subject: ps.Plan, seed: int = 1) -> dict[tuple[str, str], tuple[float, bool]]:
    report = audit_within(target_of(subject), ps.randomness.seeded(seed), moves=150, starts=8)
    assert report.violated == any(row[-1] for row in report.rows)
    return {(row[0], row[1]): (row[4], row[5]) for row in report.rows}  # type: ignore[misc]


@pytest.mark.ci
@pytest.mark.parametrize(("pull", "n_max"), [(0.0, 40), (10.0, 40), (1000.0, 5)])
def test_the_claim_is_nearly_attained_and_never_beaten(pull: float, n_max: int) -> None:
    ratios = found(plan(pull, n_max))
    assert not any(violated for _, violated in ratios.values())
    for name in ("N", "L", "A", "B", "joint"):
        assert 0.9 < ratios[name, "add-remove"][0] <= 1
        assert ratios[name, "replace-one"][0] <= 1
    assert ratios["A", "replace-one"][0] > (0.9 if pull == 1000.0 else 0.4)  # loose where offsets are free


@pytest.mark.ci
def test_a_claim_that_takes_a_promise_about_n_max_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every client had at most n_max records, this smaller one would do; the rule for larger ones costs more."""

    def promised(schema: Any, weights: Any, adjacency: str) -> float:
        t, radius = schema.weight, schema.clip_norm
        square = (
            weights.get("N", 0.0)
            + weights.get("L", 0.0) * (1 + t * t) ** 2
            + weights.get("A", 0.0) * radius**2 * (1 + t * t) * (1 + t) ** 2
            + weights.get("B", 0.0) * radius**4 * (1 + t) ** 4
        )
        return float(square if adjacency == "add-remove" else 4 * square)

    change_kind(monkeypatch, "within", move=lambda _: promised)
    assert found(plan(40.0, 40))["B", "add-remove"][1]


def test_a_claim_of_twice_the_square_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(right: Any) -> Any:
        return lambda schema, weights, _: 2 * right(schema, weights, "add-remove")

    change_kind(monkeypatch, "within", move=twice)
    assert found(plan(1e4))["A", "replace-one"][1]


def test_the_command_searches_and_other_kinds_are_refused(tmp_path: Any, privstats: Any) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(plan().to_toml())
    done = privstats("audit", "sensitivity", str(path), "--starts", "1", "--seed", "1", "--json", cwd=tmp_path, code=0)
    assert '"within"' in done.stdout
    path.write_text(first(PUBLIC, PROMISE).to_toml())
    refused = privstats("audit", "sensitivity", str(path), cwd=tmp_path, code=2)
    assert "no search for a worst pair is available for a GaussianSchema" in refused.stderr
    with pytest.raises(ps.PlanError, match="audit sensitivity"):
        audit_within(target_of(replace(plan(), schema=ps.ClassSchema(3, 4, "NAB", 2.0))), ps.randomness.seeded(1))
