"""Strategies for plans and for clients that drop out.

Plans are small, so that a test can run them whole. A schedule lists the clients that are silent from each step on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.dp import NoPrivacy, Privacy
from privstats.dp.models import MODELS
from privstats.errors import PlanError
from privstats.plan import Cohort, Plan
from privstats.schema import of_records
from privstats.testing.datasets import Records, partitions, records
from privstats.testing.extra import hypothesis
from privstats.testing.extra import strategies as st
from privstats.testing.schemas import schemas

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from privstats.schema import Schema

__all__ = ["cohorts", "dropout_schedules", "plans", "privacies", "shards"]

Schedule = dict[str, set[int]]


def cohorts(*, max_clients: int = 5, max_records: int = 60) -> SearchStrategy[Cohort]:
    """Cohorts of 3 or more clients, with or without colluders; a majority always survives."""

    @st.composite
    def build(draw: st.DrawFn) -> Cohort:
        clients = draw(st.integers(3, max_clients))
        survivors = draw(st.integers(clients // 2 + 1, clients))
        colluders = draw(st.integers(0, min(2 * survivors - clients - 1, clients - 2)))  # what a threshold can hold
        return Cohort(clients=clients, min_survivors=survivors, max_records=max_records, colluders=colluders)

    return build()


def privacies(*, panel: bool = False) -> SearchStrategy[Privacy | NoPrivacy]:
    """No privacy, or any trust model at the record unit, with a budget from strict to loose.

    Args:
        panel: include the model whose noise a panel draws, which only a plan with a panel can have.
    """
    models = tuple(name for name, row in MODELS.items() if panel or row.drawn_by != "member")
    return st.one_of(
        st.just(NoPrivacy()),
        st.builds(
            Privacy,
            model=st.sampled_from(models),
            unit=st.just("record"),
            adjacency=st.sampled_from(["add-remove", "replace-one"]),
            epsilon=st.sampled_from([0.1, 1.0, 8.0]),
            delta=st.sampled_from([1e-6, 1e-3]),
        ),
    )


def plans(
    *,
    schema: SearchStrategy[Schema] | None = None,
    cohort: SearchStrategy[Cohort] | None = None,
    privacy: SearchStrategy[Privacy | NoPrivacy] | None = None,
) -> SearchStrategy[Plan]:
    """Valid plans; combinations that no plan admits are drawn again."""

    schemas_, cohorts_ = schemas() if schema is None else schema, cohorts() if cohort is None else cohort
    privacies_ = privacies() if privacy is None else privacy

    @st.composite
    def build(draw: st.DrawFn) -> Plan:
        try:
            return Plan(schema=draw(schemas_), cohort=draw(cohorts_), privacy=draw(privacies_))
        except PlanError:
            hypothesis.reject()
            raise

    return build()


def shards(plan: Plan, *, max_records: int = 20) -> SearchStrategy[list[Records]]:
    """One ``(X, y)`` per client of the plan: a record set cut up at random, some clients with nothing."""

    @st.composite
    def build(draw: st.DrawFn) -> list[Records]:
        X, y = draw(records(of_records(plan.schema), max_records=min(max_records, plan.cohort.max_records)))
        return [(X[part], y[part]) for part in draw(partitions(len(X), plan.cohort.clients))]

    return build()


def dropout_schedules(plan: Plan, *, survivable: bool = True) -> SearchStrategy[Schedule]:
    """``{step: {client, ...}}`` as ``simulate`` takes it: clients that send nothing from that step on.

    Args:
        plan: the plan whose clients drop out.
        survivable: at most as many clients drop out as the plan admits; otherwise at least one more, before their
            vectors are in the sum, so that the session must end without a sum.
    """
    clients, spare = plan.cohort.clients, plan.cohort.clients - plan.cohort.min_survivors
    least, most = (0, spare) if survivable else (spare + 1, clients)
    steps = plan.masking.steps
    if not survivable:
        steps = steps[: steps.index(plan.masking.upload_step) + 1]

    @st.composite
    def build(draw: st.DrawFn) -> Schedule:
        gone = draw(st.sets(st.integers(0, clients - 1), min_size=least, max_size=most))
        schedule: Schedule = {}
        for client in sorted(gone):
            schedule.setdefault(draw(st.sampled_from(steps)), set()).add(client)
        return schedule

    return build()
