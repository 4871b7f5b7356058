"""Answers to the questions of ``privstats plan init``, as options."""

GIVEN = {
    "task": "classes", "classes": 3, "features": 4, "clip-norm": 2.5, "clients": 8, "vanish": 2, "colluders": 1,
    "max-records": 900, "model": "distributed", "unit": "record", "adjacency": "replace-one", "epsilon": 2.0,
    "delta": 1e-6,
}  # fmt: skip
TERMS = {name: GIVEN[name] for name in list(GIVEN)[4:]}
"""Cohort and promise, which every task needs."""
PARTIES_AND_PROMISE = (
    "--clients 2 --vanish 0 --colluders 0 --max-records 9000 --model central --unit record --adjacency add-remove "
    "--epsilon 8 --delta 1e-6"
)


def options(**changes):
    named = {**GIVEN, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return [word for name, value in named.items() if value is not None for word in (f"--{name}", str(value))]


def words_of(answers):
    return [word for name, value in {**answers, **TERMS}.items() for word in (f"--{name}", str(value))]
