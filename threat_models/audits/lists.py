"""Several survivor lists on the random graph of a plan: whether a lying server reads a sum over too few clients.

The lies are those of the attack ``several-lists``. The clients are the library's own machines.
"""

from __future__ import annotations

from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.plan.conditions import assumption
from privstats.randomness import Generator
from threat_models.attacks.several_lists import LIES, MAX_CLIENTS, ManyClients, cohort_of, played, refusal_of
from threat_models.attacks.unmasking import tried
from threat_models.audits.verdict import Report

_COLUMNS = ("lie", "clients", "promised", "aimed at", "sessions", "read")


def audit_lists(plan: Plan, rng: Generator, *, sessions: int = 2) -> Report:
    """Play every lie against the plan's cohort; a sum that the server reads contradicts the plan.

    Args:
        sessions: number of sessions for each lie, at least 1.

    Raises:
        PlanError: clients send one message or mask with all others, or the promise needs a server that does not lie.
    """
    if refusal := refusal_of(plan):
        raise PlanError(f"audit lists {refusal}")
    parameters, rows = played(plan), []
    for name, lie in LIES.items():
        runs = [ManyClients(rng, parameters=parameters) for _ in range(sessions)]
        read = sum(tried(lie, run) for run in runs)
        aimed = min(len(set(run.aimed) - run.colluding) for run in runs)
        promised = parameters.min_survivors - parameters.colluders
        rows.append((name, parameters.clients, promised, aimed, sessions, read))
    notes = [
        cohort_of(parameters),
        "promised: honest clients in every sum that the server reads; aimed at: the fewest over which the lists would "
        "show the sum if a client counted its neighbours' signatures alone; read: sessions that showed such a sum",
        f"the plan promises this while {assumption(plan, 'masks')}",
    ]
    if parameters.clients < plan.masking.clients:
        notes.insert(
            0,
            f"the plan has {plan.masking.clients:,} clients, and a session is played with at most {MAX_CLIENTS}: the "
            "numbers of this page are of a smaller cohort",
        )
    return Report("lists", _COLUMNS, tuple(rows), tuple(notes), any(row[-1] for row in rows))
