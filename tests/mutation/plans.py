"""The small plans on which deliberate bugs are looked for: every model, unit, adjacency and schema once."""

import privstats as ps
from privstats.dp.privacy import Privacy
from privstats.plan import Plan
from privstats.randomness import seeded

_CLASSES = ps.ClassSchema(3, 8, "NAB", 1.0)
_PARTIES = ps.PartySchema(3, 8)
_FOLDS = ps.RidgeSchema(4, 2, clip_norm=1.0, target_bound=2.0, folds=3)
_RECORD = {"unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}
_CLIENT = {**_RECORD, "unit": "client", "max_records_per_client": 50}
_PERSON = {**_RECORD, "unit": "person", "max_records_per_person": 5, "person_clip": 2.0}
_AVERAGE = {**_RECORD, "unit": "person", "person_clip": "average"}
_PARTY = {**_CLIENT, "max_records_per_client": 1, "adjacency": "replace-one"}
_PANEL = tuple(ps.secagg.Identity.generate(seeded(place).bytes).public.hex() for place in range(3))
_Q = {"G": 0.1, "h": 0.1, "q": 0.8}


def plan_of(name: str) -> Plan:
    """One of the small plans on which bugs are looked for, built under whatever is planted now."""
    schema, minimum, promise = {
        "central": (_CLASSES, 5, {"model": "central", **_RECORD}),
        "shares": (_CLASSES, 0, {"model": "distributed", **_RECORD}),
        "swap": (_CLASSES, 0, {"model": "distributed", **_RECORD, "adjacency": "replace-one"}),
        "loose": (_CLASSES, 0, {"model": "central", **_RECORD, "epsilon": 10.0}),
        "layers": (_CLASSES, 0, {"model": "distributed", **_RECORD}),
        "panel": (_CLASSES, 0, {"model": "panel", **_RECORD}),
        "local": (_CLASSES, 0, {"model": "local", **_RECORD}),
        "clip": (_CLASSES, 0, {"model": "distributed", **_CLIENT, "client_clip": 5.0}),
        "client": (_CLASSES, 0, {"model": "central", **_CLIENT}),
        "persons": (_CLASSES, 0, {"model": "central", **_PERSON}),
        "persons swap": (_CLASSES, 0, {"model": "distributed", **_PERSON, "adjacency": "replace-one"}),
        "averages": (_CLASSES, 0, {"model": "central", **_AVERAGE}),
        "parties": (_PARTIES, 0, {"model": "distributed", **_PARTY}),
        "ridge": (_FOLDS, 0, {"model": "central", **_RECORD}),
        "ridge swap": (_FOLDS, 0, {"model": "central", **_RECORD, "adjacency": "replace-one", "shares": _Q}),
    }[name]
    cohort = ps.Cohort(8, 5, 2000, colluders=1)
    more = {"panel": {"protocol": "split", "panel": _PANEL}, "layers": {"excess_noise": "removed"}}.get(name, {})
    return ps.Plan(schema=schema, cohort=cohort, privacy=Privacy(**promise), min_count=minimum, **more)
