"""A sample of the table ``[devices]``, and plans that have it."""

from typing import Any

import privstats as ps

PANEL = tuple(character * 64 for character in "ab")
REGISTRAR_KEY = "c" * 64
COUNTS = ps.CountSchema(
    variables=(ps.Categories("smokes", ("yes", "no")), ps.Bins("age", (18, 40, 60, 80))), tables=(("smokes", "age"),)
)
PERSON = ps.Privacy(
    model="panel", unit="client", adjacency="add-remove", epsilon=1.0, delta=1e-6, max_records_per_client=1
)


def sample_devices(**changes: Any) -> ps.plan.Devices:
    """Two organisations, a registrar and a page, and one run; no epsilon unless it is given."""
    people = {"organisations": ("Ulm", "Bonn"), "registrar": "Trier", "registrar_key": REGISTRAR_KEY, "page": "Kiel"}
    return ps.plan.Devices(**{**people, "most_runs": 1, **changes})


def devices_plan(*, panel: tuple[str, ...] = PANEL, clients: int = 20, **changes: Any) -> ps.Plan:
    """A plan of a survey: one answer of each person, noise of the panel."""
    cohort = ps.Cohort(clients, clients // 2, clients)
    around = {"schema": COUNTS, "cohort": cohort, "privacy": PERSON, "protocol": "split", "panel": panel}
    return ps.Plan(**{**around, "devices": sample_devices(stated_epsilon=1.6), **changes})
