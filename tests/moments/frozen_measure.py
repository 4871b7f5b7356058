"""Freezes what ``ps.measure`` and ``flatten`` give for records that a client in another language must read alike.

python -m tests.moments.frozen_measure > tests/moments/vectors/measure.json

400 cases of rows (classes with NA and NAB, ridge of one fold), as hex of float64: ties, giants, subnormals, rows one
step off the clip; 100 of counts, every value with its type, alone and among others with blanks; and 60 of numbers
beside tables or alone: both ends, values that 15 digits call an end, halves of a step, integers and gaps.
"""

import json
import struct
import sys

import numpy as np

import privstats as ps
from privstats.encoding import flatten
from tests import made

ROWS, COUNTS, NUMBERS = 400, 100, 60
_TIE = 100_000_000_000_000.5  # of 16 digits, so that 15 of them are a tie

LEVELS = ps.Bins("level", (0, 40, 60, 120), missing=True)
TIMES = ps.Bins("time", (0.1, 0.3, 0.7), closed="right", open="above")
LARGE = ps.Bins("large", (-1e14, 100_000_000_000_000, 100_000_000_000_001, 1e300))
SMOKES = ps.Categories("smokes", ("yes", "no", "Straße", "n.a."), other=True, missing=True)
BLOOD = ps.Categories("blood", ("0", "A", "B", "AB"))
PARITY = ps.Categories("parity", (0, 1, 2, 9_007_199_254_740_991), other=True)
_VALUES = {
    "level": (None, -1.0, -0.0, 0, 39.99999999999999, 40, 40.000000000000006, 59.9999999999999999, 60, 120, 121, 1e300),
    "time": (0.1, 0.1 + 0.2, 0.3, 0.30000000000000004, 0.7, 0.7000000000000001, 5e-324 + 0.2, 1e9),
    "large": (_TIE, _TIE + 1, 99_999_999_999_999.98, 100_000_000_000_000, 1e14 + 0.25, 1e14 + 0.75, 1e14 + 1.5, -1e14),
    "smokes": ("yes", "no", "Straße", "n.a.", "Yes", "sometimes", "\u0001", None, "yes?", "jä"),
    "blood": ("0", "A", "B", "AB"),
    "parity": (0, 1, 2, 3, -1, 9_007_199_254_740_991, 9_007_199_254_740_990, -0.0),
}
ASKED = (
    ps.Number("hours", 0, 80, by=("blood",), missing=True),
    ps.Number("km", -1, 3),
    ps.Number("far", 0.1, 0.7, by=("blood", "level")),
)
_VALUES |= {
    "hours": (None, 0, -0.0, 80, 80.00000000000001, 79.99999999999999, 40, 39.5, 40 + 2.5 / 102.4, 1 / 3),
    "km": (-1, 3, 1, 1 + 0.5 / 2048, 1 + 1.5 / 2048, 1 - 0.5 / 2048, 1 - 2.5 / 2048, 3 - 0.5 / 2048, 0.1 + 0.2),
    "far": (0.1, 0.7, 0.7000000000000001, 0.4, 0.3, 0.1 + 0.2, 0.6999999999999998, 0.55),
}
_TABLES = (("level",), ("smokes", "level"), ("time", "parity"), ("blood",), ("large", "blood", "smokes"))


def rows(rng: np.random.Generator, width: int, step: float, clip: float) -> np.ndarray:
    """One to five rows of the sort that tells arithmetics apart."""
    found = rng.normal(size=(rng.integers(1, 6), width)) * clip * 10.0 ** rng.integers(-2, 3)
    for row in found:
        at = rng.integers(0, width, 2)
        match int(rng.integers(0, 9)):
            case 0:
                row[:] = (rng.integers(-9, 9, width) + 0.5) * step
            case 1:
                row[at] = (1.7e308, 5e-324)
            case 2:
                row[:] = 0.0
                row[at[0]] = clip
            case 3:
                row *= clip / np.linalg.norm(row)
            case 4:
                row *= np.nextafter(1.0, rng.integers(0, 3)) * clip / np.linalg.norm(row)
            case 5:
                row[:] = 5e-324 * rng.integers(-3, 4, width)
            case 6:
                row[:] = (2.0**51 + rng.integers(0, 9, width) / 2) * step * rng.choice((-1, 1), width)
    return found


def case_of_rows(rng: np.random.Generator, number: int) -> dict:
    """A plan's schema and records, and what Python makes of them."""
    features = int(rng.choice((2, 3, 5, 13)))
    kept = {
        "clip_norm": float(rng.choice((1e-12, 0.3, 1.0, 7.5, 3e7))),
        "grid_bits": int(rng.choice((4, 12, 20))),
        "nonnegative": bool(rng.integers(0, 2)),
    }
    names, step = None, kept["clip_norm"] / 2 ** kept["grid_bits"]
    X = rows(rng, features, step, kept["clip_norm"])
    if number % 4 == 3:
        targets, bound = int(rng.integers(1, 4)), float(rng.choice((1e-3, 1.0, 250.0)))
        schema = ps.RidgeSchema(features, targets, target_bound=bound, **kept)
        y = np.resize(rows(rng, targets, bound / 2 ** kept["grid_bits"], bound), (len(X), targets))
        told = hexed(y)
    else:
        names = ("ja", "nein", "Ärzte") if number % 5 == 0 else None
        schema = ps.ClassSchema(3, features, ("NA", "NAB")[number % 2], class_names=names, **kept)
        y = [names[i] if names else int(i) for i in rng.integers(0, 3, len(X))]
        told = y
    vector = flatten(ps.moments.exact_moments(schema, X, y))
    return {"schema": table_of(schema), "X": hexed(X), "y": told, "vector": vector.tolist()}


def case_of_counts(rng: np.random.Generator, number: int) -> dict:
    """One record alone, or among others with blanks."""
    table = _TABLES[number % len(_TABLES)]
    known = {each.name: each for each in (LEVELS, TIMES, LARGE, SMOKES, BLOOD, PARITY)}
    schema = ps.CountSchema(tuple(known[name] for name in table), (table, *([table[:1]] * (len(table) > 1))))
    count = 1 if number % 2 else int(rng.integers(2, 6))
    records = {name: [_VALUES[name][i] for i in rng.integers(0, len(_VALUES[name]), count)] for name in table}
    return {"schema": table_of(schema), "records": records, "vector": counted(schema, records)}


def case_of_numbers(rng: np.random.Generator, number: int) -> dict:
    """Numbers by group beside a table, or one alone; one record, or some."""
    alone = number % 3 == 2
    known = ((), (), ASKED[1:2]) if alone else ((BLOOD, LEVELS), (("level",),), ASKED)
    schema = ps.CountSchema(*known[:2], numbers=known[2])
    count, names = 1 if number % 2 else int(rng.integers(2, 6)), [each.name for each in schema.read]
    records = {name: [_VALUES[name][i] for i in rng.integers(0, len(_VALUES[name]), count)] for name in names}
    return {"schema": table_of(schema), "records": records, "vector": counted(schema, records)}


def counted(schema: ps.CountSchema, records: dict) -> list[int]:
    """The vector of all records, which is the sum of each record's alone."""
    whole = flatten(
        ps.moments.exact_moments(schema, {name: np.array(values, object) for name, values in records.items()})
    )
    each = zip(*records.values(), strict=True)
    alone = [
        flatten(ps.moments.exact_moments(schema, {n: [v] for n, v in zip(records, row, strict=True)})) for row in each
    ]
    assert (whole == np.sum(alone, axis=0)).all()
    return whole.tolist()


def table_of(schema: ps.schema.Schema) -> dict:
    """The schema as the canonical text of a plan holds it."""
    plan = made.plan(schema, ps.Cohort(clients=4, min_survivors=3, max_records=100))
    return json.loads(json.dumps(plan.tables["schema"], default=list))


def hexed(array: np.ndarray) -> list[list[str]]:
    """Rows as hex of their big-endian float64."""
    return [[struct.pack(">d", value).hex() for value in row] for row in np.atleast_2d(array)]


def frozen() -> dict:
    """All cases, from one seed."""
    rng = np.random.default_rng(20261123)
    rows_cases = [case_of_rows(rng, number) for number in range(ROWS)]
    counts = [case_of_counts(rng, number) for number in range(COUNTS)]
    rng = np.random.default_rng(20261125)
    return {
        "rows": rows_cases,
        "counts": counts,
        "numbers": [case_of_numbers(rng, number) for number in range(NUMBERS)],
    }


if __name__ == "__main__":
    found = frozen()
    print("{")
    for name, cases in found.items():
        lines = ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases)
        print(f'"{name}": [\n{lines}\n]' + ("," if name != "numbers" else ""))
    sys.stdout.write("}\n")
