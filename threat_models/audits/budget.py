"""The value of a promise: per statistic, per record and per client, under both adjacencies, against any attacker.

Arithmetic on the noise of a plan; the other audits measure.
"""

from __future__ import annotations

from collections.abc import Iterator

from privstats.dp import client_mu, gaussian_epsilon, joint_mu, operating_point
from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError
from privstats.printable import at_most, delta_text
from privstats.randomness import seeded
from privstats.review.drop_outs import plan_dropouts
from threat_models.audits.searches import declared_mu
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report, Value

_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
_COLUMNS = ("statistic", "between", "unit", "adjacency", "mu", "epsilon", "TPR@1%", "AUC", "advantage")
_BOUNDS = _COLUMNS[4:]
_TOLERANCE = 1e-6
_SEARCH = 1  # the search starts from the same places in every run, so that a budget prints the same
_SHORT: dict[Adjacency, str] = {"add-remove": "+/-", "replace-one": "swap"}


def audit_budget(target: Target, client_records: int | None = None) -> Report:
    """One row per statistic and one for all of them, for each unit and adjacency.

    The rows are the library's own arithmetic. The verdict is not: it holds the largest mu that a search for the worst
    unit finds under the declared noise against the mu of epsilon and delta as the plan states them.

    Args:
        client_records: records of the client whose exposure is shown; the plan's own limit where it has one.
    """
    result, promise = declared_mu(target, seeded(_SEARCH)), target.promise  # refuses a kind without a search first
    noise, delta = target.noise, target.privacy.delta
    rows: list[tuple[Value, ...]] = []
    most = client_records or target.privacy.max_records_per_client
    promised = (target.privacy.unit, target.privacy.adjacency, target.privacy.max_records_per_client or 1, "joint")
    for unit, records in (("record", None if target.schema.refusal("record") else 1), ("client", most)):
        if records is None:
            continue
        for adjacency in _ADJACENCIES:
            for name, sigma in _questions(dict(noise.sigma)):
                mu = _mu_of(target, unit, adjacency, sigma, records)
                if mu is None:
                    continue
                mark = " *" if (unit, adjacency, records, name) == promised else ""
                between = (f"{unit} {_SHORT[adjacency]}{mark}", unit, adjacency)
                epsilon = gaussian_epsilon(mu, delta) if mu else 0.0  # a pooled count, between records exchanged
                rows.append((name, *between, mu, epsilon, *operating_point(mu)))
    rows += _of_persons(target)
    notes = [
        f"the plan promises epsilon {at_most(promise.epsilon)} at delta {delta_text(promise.delta)} per {promise.unit} "
        f"under {promise.adjacency}; a search finds mu {result:.6g} under its noise, the promise is mu "
        f"{promise.mu:.6g}",
        "*: what the plan promises; the other rows show what its noise gives for parts of the release, and against "
        "changes that it does not promise to hide",
        "+/-: one more or one less (add-remove); swap: one exchanged for another (replace-one)",
        "TPR@1% (at 1 % false alarms), AUC and advantage are the most that any attacker can reach, whatever it knows",
    ]
    if target.privacy.client_clip is not None:
        notes.append(
            f"a client is clipped to the norm of {target.privacy.client_clip:g} records, so the client rows "
            "overstate: they count every record in full"
        )
    if most is None:
        notes.append("client rows need the records of a client: give --client-records")
    violated = result > promise.mu * (1 + _TOLERANCE)
    return Report("budget", _COLUMNS, tuple(rows), tuple(notes), violated, ("between",), ("unit", "adjacency"), _BOUNDS)


def _mu_of(target: Target, unit: str, adjacency: Adjacency, sigma: dict[str, float], records: int) -> float | None:
    """mu of these statistics; None where the kind bounds no such change, so that a plan cannot promise it either."""
    try:
        mu = client_mu(target.schema, sigma, adjacency, records) if unit == "client" else 0.0
        return mu or joint_mu(target.schema, sigma, adjacency)
    except PlanError:
        if (unit, adjacency) == (target.privacy.unit, target.privacy.adjacency):
            raise
        return None


def _of_persons(target: Target) -> Iterator[tuple[Value, ...]]:
    """The rows of a whole person, whose clip alone bounds every statistic and all of them together."""
    noise, privacy = target.noise, target.privacy
    if target.plan.person_clip is None:
        return
    for name in (*noise.sigma, "joint"):
        between = f"person {_SHORT[privacy.adjacency]}{' *' if name == 'joint' else ''}"
        at = gaussian_epsilon(noise.mu, privacy.delta)
        yield name, between, "person", privacy.adjacency, noise.mu, at, *operating_point(noise.mu)


def audit_dropouts(target: Target) -> Report:
    """epsilon of the release by the number of clients that drop out: the table of ``plan check``."""
    table = plan_dropouts(target.plan, target.noise)
    rows = tuple(
        (row.gone, row.survivors, row.honest, row.epsilon, "aborted" if row.epsilon is None else "released")
        for row in table
    )
    most = target.noise.epsilon * (1 + _TOLERANCE)
    violated = any(row.epsilon > most for row in table if row.epsilon is not None)
    notes = (
        f"{target.privacy.model} noise, {target.clients} clients, at least {target.min_survivors} survivors, "
        f"{target.colluders} colluders; the promise is epsilon {at_most(target.noise.epsilon)}",
        "gone: clients that vanish; aborted: too few survivors, so nothing is released",
    )
    columns = ("gone", "survivors", "honest", "epsilon", "session")
    return Report("dropouts", columns, rows, notes, violated, bounds=("epsilon",))


def _questions(sigma: dict[str, float]) -> list[tuple[str, dict[str, float]]]:
    return [*((s, {s: value}) for s, value in sigma.items()), ("joint", sigma)]
