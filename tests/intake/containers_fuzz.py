"""Fuzz the law of reading: one record never changes what another record adds, in any container.

A table of persons is drawn, and one record or one person more with odd values. The base, the records more and their
union are put into every container (``containers``) and measured with ``unreadable="leave out"``. The rules:

    add      sums(base) + sums(more) == sums(both), bit for bit
    split    where a split holds records out: sums(both) - sums(base) are the sums of none, some or all of the records
             more. A split does not add up: equal records of base and more are counted in one pass
    refused  base, more and both are all measured, or all refused: a refusal follows from public values alone
    digests  the digests of the base's persons are equal with and without the records more
    alike    the sums are those of a list of the same values, where the container keeps the values

    python -m tests.intake.containers_fuzz --tables 200 --seed 1 --show 1

It prints a line per container with the number of tables and of violations of each rule, and exits with 1 if there is a
violation. Containers whose library is not installed, and tables that a container cannot hold, do not count.
"""

import argparse
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from privstats.contrib.streams import PersonRows
from privstats.encoding import flatten
from privstats.errors import PrivstatsError
from privstats.moments import RecordFile, Records
from privstats.records.from_file import persons_in, records_in
from tests.intake.containers import CONTAINERS, FEATURES, Container, Held, NotHeldError, Row, Table, is_narrow

RULES = ("add", "split", "refused", "digests", "alike")
SHARE, SEED = 0.5, 3
# Holds out no record of a drawn table.
NO_SHARE = 1e-9


@dataclass(frozen=True)
class Plan:
    """What measures a table.

    Attributes:
        schema: the statistics.
        target: draws a label or target.
        reads: "features", "table" (declared columns) or "counts".
    """

    schema: Any
    target: Callable[[random.Random], Any]
    reads: str = "features"


_CELLS = ps.Cells(
    (
        ps.Numeric("f0", (-0.05, 0.0, 0.05)),
        ps.Categories("f1", ("a", "b")),
        ps.Dates("f2", ("1990-01-01", "2010-01-01")),
    )
)
_COUNTS = ps.CountSchema(
    (
        ps.Categories("f0", (0, 1, 2), other=True, missing=True),
        ps.Categories("f1", ("a", "b"), other=True, missing=True),
        ps.Bins("f2", (-1.0, 0.0, 1.0), open="both", missing=True),
    ),
    (FEATURES,),
)
_LATE = ps.CountSchema(
    (*(ps.Bins(name, (-0.1, 0.0, 0.1)) for name in FEATURES[:2]), ps.Bins("f2", (-1.0, 0.0, 1.0), missing=True)),
    (("f0", "f2"), ("f1",)),
    late_entry=ps.LateEntry("f1", "f0", times="continuous"),
)


def _fine(rnd: random.Random) -> float:
    """A number halfway between two steps of the grid of a plan, which no rounding by another type leaves alone."""
    return (2 * rnd.randint(-1500, 1500) + 1) / 2**13


PLANS: Mapping[str, Plan] = {
    "classes": Plan(ps.ClassSchema(2, 3, "NA", 1.0, feature_names=FEATURES), lambda rnd: rnd.randrange(2)),
    "names": Plan(
        ps.ClassSchema(2, 3, "NAB", 1.0, feature_names=FEATURES, class_names=("cat", "dog")),
        lambda rnd: rnd.choice(("cat", "dog")),
    ),
    "mean": Plan(ps.MeanSchema(3, 1.0, feature_names=FEATURES), lambda _: 0),
    "ridge": Plan(ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0, feature_names=FEATURES), _fine),
    "cells": Plan(
        ps.ClassSchema(2, _CELLS.width, "NA", 1.0, transform=(_CELLS,)), lambda rnd: rnd.randrange(2), "table"
    ),
    "counts": Plan(_COUNTS, lambda _: 0, "counts"),
    "late entry": Plan(_LATE, lambda _: 0, "counts"),
}
CLIPS: Sequence[float | str | None] = (None, None, 2, "average")

_VALUES: Mapping[str, Callable[[random.Random], Any]] = {
    "float64": lambda rnd: rnd.choice((float("inf"), -float("nan"))) if rnd.random() < 0.04 else _fine(rnd),
    "float32": lambda rnd: np.float32(_fine(rnd)),
    "integer": lambda rnd: rnd.randint(-2, 2),
    "truth": lambda rnd: rnd.random() < 0.5,
    "date": lambda rnd: date(1970, 1, 1) + timedelta(rnd.randint(0, 20_000)),
    "time": lambda rnd: datetime(1970, 1, 1) + timedelta(rnd.randint(0, 20_000), rnd.randint(0, 80_000)),
    "decimal": lambda rnd: Decimal(rnd.randint(-5000, 5000)).scaleb(-4),
    "word": lambda rnd: rnd.choice("abc"),
    "gap": lambda _: None,
    "span": lambda rnd: timedelta(days=rnd.randint(0, 9)),
}
_CALM = ("float64", "float64", "float32", "integer")
_ODD_NUMBERS = (None, float("nan"), float("inf"), 0.1, 3, -0.0, 2**53 + 1, 1e-320, True)
ODD = (
    *(None, float("nan"), float("inf"), "", "word", "n/a", "0.5", "1e-3", "1,5", "true", "2020-01-02", "\u0663", "b"),
    *(True, False, 3, 7, 0.1, -0.0, 2**63, 2**70, 10**400, 1 + 0j, np.float32(0.1), np.float16(0.1), Decimal("0.25")),
    *(date(2020, 1, 2), datetime(2020, 1, 2, 3), timedelta(days=3), np.datetime64("2020-01-01")),
    *(b"x", [1], "M\ufffdn"),
)
ODD_TARGETS = (None, "x", float("nan"), 9, "")
ODD_IDS = (
    *(None, "", "n/a", 1.5, "1.5", True, "True", date(2020, 1, 2), "2020-01-02", "A7", 2**60, "M\ufffdn", 77.0, "77"),
    *("inf", b"\xff\x01", "12:30:00", np.float32(77), "\u00e9", "007x", "1e5", "0x10"),
)
_OBJECT_ID = bytes.fromhex("65a1b2c3aabbccddee1234")
_IDS: Mapping[str, Callable[[int], Any]] = {
    "integer": lambda number: 1000 + number,
    "zeros": lambda number: f"{1000 + number:07d}",
    "name": lambda number: f"p{number}",
    "blank": lambda number: f"p {number}",
    "large": lambda number: 2**53 + 2 * number + 1,
    "float32": lambda number: np.float32(2**24 - 4 + 2 * number),
    "bytes": lambda number: _OBJECT_ID + bytes([(9, 10, 65, 0, 32, 13, 97, 255)[number % 8]]),
}


def drawn(name: str) -> Table:
    """Draw a table; the name is the seed."""
    rnd = random.Random(name)
    plan, clip = rnd.choice(list(PLANS)), rnd.choice(CLIPS)
    calm = rnd.random() < 0.5
    odd = rnd.choice((ODD, _ODD_NUMBERS)) if calm else ODD
    usual = (*(_CALM if calm else _VALUES), *(("date", "word") if PLANS[plan].reads == "table" else ()))
    kinds, id_of = [rnd.choice(usual) for _ in FEATURES], _IDS[rnd.choice(list(_IDS))]

    def row(person: Any, share_odd: float) -> Row:
        values = [rnd.choice(odd) if rnd.random() < share_odd else _VALUES[kind](rnd) for kind in kinds]
        if share_odd and rnd.random() < 0.05:  # only lists can hold such a row
            values = rnd.choice((values[:1], [*values, 0.5], []))
        is_odd = share_odd and rnd.random() < 0.15
        return Row(values, rnd.choice(ODD_TARGETS) if is_odd else PLANS[plan].target(rnd), person)

    persons = rnd.randint(1, 4)
    base = [row(id_of(person), 0.0) for person in range(persons) for _ in range(rnd.choice((1, 1, 2, 3, 5)))]
    new = rnd.choice(ODD_IDS) if rnd.random() < 0.3 else id_of(persons)
    table = Table(
        name=name,
        plan=plan,
        clip=clip,
        base=base,
        more=[row(new, 0.4) for _ in range(rnd.choice((1, 1, 1, 2)))],
        more_first=rnd.random() < 0.5,
        narrow=frozenset(place for place, kind in enumerate(kinds) if kind == "float32"),
        shared_file=rnd.random() < 0.5,
        by_pandas=rnd.random() < 0.5,
        is_split=rnd.random() < 0.3,
    )
    if clip is not None or rnd.random() < 0.7:
        return table
    # Equal records, and some that are equal but for the target: a split counts these apart.
    base = [replace(each, target=PLANS[plan].target(rnd)) for each in base for _ in range(4)]
    return replace(table, base=base, more=[replace(rnd.choice(base), person=new) for _ in table.more])


def _rows(*rows: tuple[Sequence[Any], Any]) -> list[Row]:
    return [Row(values, 0, person) for values, person in rows]


def known() -> Iterator[Table]:
    """Tables of which one record moved others in an earlier version, under every unit."""
    day, narrow = date(1970, 3, 2), np.float32(11 / 8192)
    dates = _rows(*(([51, day, 7], f"p{person}") for person in range(5)))
    one, other = [1.0, 0.0, 0.0], [0.0, 0.5, 0.0]
    for clip in (None, 2, "average"):

        def table(name: str, plan: str, base: list[Row], more: list[Row], clip: Any = clip, **options: Any) -> Table:
            return Table(name, plan, clip, base, more, **options)

        yield table("a gap next to dates", "classes", dates, _rows(([None, day, 7], "zoe")))
        yield table("a word next to dates", "classes", dates, _rows((["unknown", day, 7], "zoe")))
        yield table(
            "a word in a file of a folder",
            "classes",
            _rows(*(([narrow] * 3, f"p{person}") for person in range(40))),
            _rows((["n/a?"] * 3, "carl")),
            more_first=True,
            narrow=frozenset((0, 1, 2)),
        )
        yield table(
            "a date in a file of a folder", "classes", _rows(([1, 0.5, 0.25], "p1")), _rows(([day, 0.5, 0.25], "zoe"))
        )
        yield table(
            "ids of another type in a file",
            "mean",
            _rows(*[(one, 12345678901)] * 9, ([0.0] * 3, None)),
            _rows(([0.0] * 3, "A7")),
            more_first=True,
            shared_file=True,
            by_pandas=True,
        )
        yield table("a row of another length", "classes", _rows(*[([0.5, 0.25, 0.0], "anna")] * 3), _rows(([0.5], "z")))
        yield table("every person above the clip", "mean", _rows(*[(one, "anna")] * 3, *[(other, "ben")] * 3),
            _rows((other, "zoe")))  # fmt: skip
        yield table("ids of bytes", "mean", _rows(*[(one, _OBJECT_ID + b"\x09")] * 24),
            _rows(*[([-1.0, 0.0, 0.0], _OBJECT_ID + b"\x0a")] * 3))  # fmt: skip
        yield table(
            "ids of narrow numbers",
            "mean",
            _rows(*[(one, np.float32(2**24))] * 8),
            _rows((other, np.float32(2**24 + 2))),
        )
        yield table("ids of narrow numbers beside a wide one", "mean", _rows(*[(one, np.float32(2**24 + 2))] * 8),
            _rows((other, 7)))  # fmt: skip
        yield table(
            "ids that readers take for fractions",
            "mean",
            _rows(*((one, f"12.{place}") for place in range(1, 9))),
            _rows((other, "A7")),
        )
        yield table(
            "ids that readers take for integers",
            "mean",
            _rows(*((one, f"{place}e1") for place in range(1, 9))),
            _rows((other, "A7")),
        )
        yield table("an id that readers take for infinite", "mean", _rows(*[(one, "p1")] * 3), _rows((other, "inf")))
    yield Table("a list as one value of a column", "counts", None, _rows(([0.5, "a", 0.25], "p1")),
        _rows(([[1], "b", 0.25], "zoe")))  # fmt: skip
    lost = (-float("nan"), float("inf"), float("nan"))
    infinite = [Row([lost[place % 3], place / 8, 0.5], place % 2, f"p{place}") for place in range(24)]
    alike = [Row([1, 2, 0.5], place % 2, f"p{place}") for place in range(24)]
    for first in (False, True):
        yield Table("a record more of equal ones in a split", "classes", None, alike, _rows(([1, 2, 0.5], "zoe")),
            more_first=first, is_split=True)  # fmt: skip
    yield Table("a word next to rows that are not finite", "cells", None, infinite, _rows(([0.5, "word", 0.5], "zoe")))


# --- measuring


@dataclass(frozen=True)
class Outcome:
    """What became of some records in a container.

    Attributes:
        sums: in integers; None where the records were refused.
        digests: by person; None where the container gives none.
        refusal: the error.
        is_split: whether a split by records, and not by persons, held some out.
    """

    sums: Any = None
    digests: Mapping[str, bytes] | None = None
    refusal: str = ""
    is_split: bool = False


@cache
def clip_of(plan: str, clip: float | str) -> Any:
    """Return the clip of a plan of :data:`PLANS` under a promise per person."""
    limits: dict[str, Any] = {} if clip == "average" else {"max_records_per_person": 4}
    settings: dict[str, Any] = {"unit": "person", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5}
    return ps.dp.person_clip(PLANS[plan].schema, ps.Privacy(model="central", person_clip=clip, **settings, **limits))


def _of_file(path: Path, table: Table, plan: Plan, share: float) -> tuple[Any, Any, Any]:
    split: dict[str, Any] = {"split": share, "seed": SEED} if table.is_split and plan.reads != "counts" else {}
    if table.clip is not None:
        return persons_in(RecordFile(path, target="y", persons="id", **split), plan.schema.reading, "leave out")
    return (*records_in(RecordFile(path, target="y", **split), plan.schema.reading, "leave out"), None)


def _measured(held: Held, container: Container, table: Table, share: float) -> Outcome:
    plan = PLANS[table.plan]
    X, y, persons = (held.X, held.y, held.persons) if held.path is None else _of_file(held.path, table, plan, share)
    if container.is_split:
        left = Records(X.to_numpy(), y.to_numpy(), FEATURES).summed(share, SEED)
        X, y, persons = left.X, left.y, None
    if table.clip is not None and persons is None:
        raise NotHeldError
    y = None if plan.reads == "counts" else y
    if table.clip is None:
        is_split = container.is_split or (held.path is not None and table.is_split and plan.reads != "counts")
        return Outcome(flatten(ps.measure(plan.schema, X, y, unreadable="leave out")), is_split=is_split)
    clip: Any = clip_of(table.plan, table.clip)
    moments = ps.measure(plan.schema, X, y, unreadable="leave out", persons=persons, person_clip=clip)
    if plan.reads != "features" or held.path is not None or hasattr(X, "tocsr"):
        return Outcome(flatten(moments))
    rows = PersonRows.of(X, y, persons)
    sums = flatten(rows.measured(plan.schema, clip, "leave out"))
    if not np.array_equal(sums, flatten(moments)):
        return Outcome(refusal="PersonRows has other sums than measure")
    return Outcome(sums, rows.digests)


def outcome(name: str, rows: Sequence[Row], table: Table, folder: Path, share: float = SHARE) -> Outcome:
    """Measure some records in a container.

    Raises:
        NotHeldError: the container cannot hold them.
    """
    container = CONTAINERS[name]
    try:
        held = container.build(rows, table, folder)
    except Exception as error:
        raise NotHeldError from error
    try:
        return _measured(held, container, table, share)
    except NotHeldError:
        raise
    except PrivstatsError as error:
        return Outcome(refusal=f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(refusal=f"not the package's own {type(error).__name__}: {error}")


@dataclass(frozen=True)
class Verdict:
    """What one table shows about one container.

    Attributes:
        broken: by rule of the law, how it is broken.
        is_refused: whether all of the table was refused.
    """

    broken: Mapping[str, str]
    is_refused: bool = False


def verdict(name: str, table: Table, folder: Path) -> Verdict | None:
    """Hold the law of reading against one container; None where the container cannot hold the table."""
    if PLANS[table.plan].reads not in CONTAINERS[name].plans:
        return None
    with warnings.catch_warnings(action="ignore"):
        try:
            parts = (table.both, table.more, table.base)  # most of what a container cannot hold is in both
            both, more, base = (outcome(name, rows, table, folder) for rows in parts)
            return _verdict(name, table, folder, base, more, both)
        except NotHeldError:
            return None


def judged(table: Table, base: Outcome, more: Outcome, both: Outcome) -> Verdict:
    """Hold the rules "add" (without a split) and "refused" against three outcomes."""
    outcomes = {"base": base, "more": more, "both": both}
    refused = {part: each.refusal for part, each in outcomes.items() if each.refusal}
    if refused and _has_narrow_ids(table) and all(_BY_TYPE in refusal for refusal in refused.values()):
        return Verdict({}, is_refused=True)  # the other parts have another type of ids, which is public
    if refused:
        foreign = any(refusal.startswith("not the package's own") for refusal in refused.values())
        if len(refused) == len(outcomes) and not foreign:
            return Verdict({}, is_refused=True)
        return Verdict({"refused": "; ".join(f"{part}: {refusal}" for part, refusal in refused.items())})
    if not both.is_split and (gap := both.sums - base.sums - more.sums).any():
        return Verdict({"add": f"off by {gap[gap != 0][:4].tolist()}"})
    return Verdict({})


def _verdict(name: str, table: Table, folder: Path, base: Outcome, more: Outcome, both: Outcome) -> Verdict:
    found = judged(table, base, more, both)
    if found.is_refused or "refused" in found.broken:
        return found
    broken = dict(found.broken)
    if both.is_split:
        gap = both.sums - base.sums
        if not any(np.array_equal(gap, some) for some in _sums_of_some(name, table, folder)):
            broken["split"] = f"off by {gap[gap != 0][:4].tolist()}"
    if base.digests is not None and both.digests is not None:
        alone = set(base.digests) - set(more.digests or ())
        if moved := sorted(person for person in alone if both.digests.get(person) != base.digests[person]):
            broken["digests"] = f"those of {moved[:4]} differ"
    container = CONTAINERS[name]
    if container.keeps and name != "list" and not (container.types_ids and _has_narrow_ids(table)):
        listed = as_lists(table)
        if not listed.refusal and (gap := both.sums - listed.sums).any():
            broken["alike"] = f"off by {gap[gap != 0][:4].tolist()}"
    return Verdict(broken)


def _sums_of_some(name: str, table: Table, folder: Path) -> Iterator[Any]:
    """Yield the sums of none, some and all of the records more."""
    alone = [outcome(name, [row], table, folder, NO_SHARE).sums for row in table.more]
    for size in range(len(alone) + 1):
        for some in combinations(alone, size):
            yield sum(some, 0 * alone[0])


@lru_cache(maxsize=1)
def as_lists(table: Table) -> Outcome:
    """Return the outcome of all records of a table as lists, which is the same beside every container."""
    return outcome("list", table.both, table, Path())  # lists need no folder


_BY_TYPE = "do not distinguish persons: pass"
"""In the refusal of a column of ids by its static type."""


def _has_narrow_ids(table: Table) -> bool:
    """Whether an id is a narrow number, which a column makes wide beside others: then it may name another person."""
    return any(is_narrow(row.person) for row in table.both)


def broken_in(table: Table, folder: Path, names: Sequence[str] = ()) -> dict[str, Mapping[str, str]]:
    """By container, how a table breaks the law."""
    names = names or [name for name, container in CONTAINERS.items() if container.is_available]
    verdicts = {name: verdict(name, table, folder) for name in names}
    return {name: each.broken for name, each in verdicts.items() if each is not None and each.broken}


def main(words: Sequence[str] | None = None) -> int:
    """Fuzz the containers, and print what was found."""
    ask = argparse.ArgumentParser(prog="python -m tests.intake.containers_fuzz", description=__doc__.split("\n")[0])
    ask.add_argument("--tables", type=int, default=100, help="tables to draw after the known ones")
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--show", type=int, default=0, help="violations to print for each container and rule")
    ask.add_argument("--only", default="", help="names of containers, parted by semicolons")
    options = ask.parse_args(words)
    names = [name for name, container in CONTAINERS.items() if container.is_available]
    names = [name for name in names if not options.only or name in options.only.split(";")]
    tables, refused, broken = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        for table in (*known(), *(drawn(f"{options.seed}/{place}") for place in range(options.tables))):
            for name in names:
                if (found := verdict(name, table, Path(folder))) is None:
                    continue
                tables[name] += 1
                refused[name] += found.is_refused
                for rule, how in found.broken.items():
                    broken[name, rule] += 1
                    if broken[name, rule] <= options.show:
                        print(f"{name}, {rule}: {table.name} ({table.plan}, {table.clip}): {how}")
    for name in names:
        counts = "  ".join(f"{rule} {broken[name, rule]}" for rule in RULES)
        print(f"{name:22} {tables[name]:6} tables  {counts}  (refused: {refused[name]})")
    print(f"{tables.total()} tables in all, {broken.total()} violations")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
