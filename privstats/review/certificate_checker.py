"""Check a budget certificate against its plan: one file that imports only Python's standard library.

    python certificate_checker.py plan.toml plan.certificate.json
    python certificate_checker.py course.toml course.certificate.json

It shares no code with privstats and reads no number from it: sensitivities, worst cases, noise and delta are
recomputed as rationals. The certificate's tables have a bound's inputs, key by key, without defaults. Exit code 0: the
certificate holds; 1: refused, by name. docs/certificate.md states what this proves.
"""

import hashlib
import json
import math
import re
import stat
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Table: TypeAlias = dict[str, Any]
ONE, COUNT, ZERO, TIGHT, MOST_BYTES = 1 << 640, 4096, Fraction(0), Fraction(1, 10**9), 1 << 23
# characters, as in the library; a part of the logarithm of any probability, where noise is a sum of discrete Gaussians
MOST_OF_A_PLAN, SLACK, MOST, TINY = 1 << 20, Fraction(1, 10**20), 1 << 53, Fraction("1e-30")
PI = Fraction(31415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679)
OF_COURSE = "version course_digest epsilon delta sessions mu_squared delta_at_epsilon"
CLAIMS = "version plan_digest plan model unit adjacency epsilon delta honest_shares statistics joint delta_at_epsilon"
# fmt: off
VECTORS = " features grid_bits=12 transform=[] feature_names?"
SIGNED = f"{VECTORS} nonnegative=false"
ROUND = f" expected_records course_mu clip_norm=1{SIGNED} class_names?"
PARTY = f"classes clip_norm=1 class_names?{SIGNED}"
SCHEMAS = {  # the keys of a kind's table beside its task
    "classes": f"classes statistics clip_norm class_names?{SIGNED}", "counts": "variables tables numbers? transform=[]",
    "ridge": f"targets=1 clip_norm target_bound folds=1{SIGNED} missing?", "mean": f"clip_norm{SIGNED}",
    "scoring": 'head head_bytes classes features score_bins=20 score="probability" reach? by_class=false transform=[] '
    "class_names? feature_names? cuts?", "sites": f"clip_norm pulls=[0] groups=1 target_scale=1{VECTORS}",
    "score": f'clip_norm family="logistic" target_bound? rate? outcomes?{SIGNED} missing? errors?',
    "hazard": f"clip_norm bins event cap=1 expected_events? times? time_unit? strata?{SIGNED} errors?",
    "effect": f'outcome probability? estimand="ate" trim? clip_norm{VECTORS.replace("12", "16", 1)} '
    "outcome_names? subgroups? groups? measure? balance? missing? left_out?", "calibration": f"classes{ROUND}",
    "gradients": f"classes? residual_norm target_bound? module?{ROUND}",
    "within": f"classes clip_norm pull n_max class_names?{SIGNED}", "party-softmax": PARTY, "party-update": PARTY,
    "gaussians": f"clip_norm shrinkage rounds reference=false among?{SIGNED}"}
KEYS = {  # of the other tables; "k?" may be missing, and a missing "k?=v" means v
    "plan": "version schema cohort privacy aggregation={} published? validity? devices?",
    "cohort": "clients min_survivors max_records colluders=0", "validity": "level most_records",
    "devices": "organisations registrar registrar_key page most_runs stated_epsilon? words? exact? texts?",
    "privacy": "model unit adjacency epsilon delta shares? max_records_per_client? client_clip? "
    "max_records_per_person? person_clip?", "published": 'sha256 after?=""',
    "dates": 'name kind edges? gaps?=[] written?=""',
    "aggregation": 'min_count=0 graph="auto" merge?={} protocol?="interactive" panel?=[] spare_bits?=0 '
    'excess_noise?="kept" key_agreement?="x25519"', "values": "name values other?=false missing?=false",
    "numbers": "name low high by?=[] missing?=false", "bins": 'name edges closed?="left"',
    "edges": 'name edges closed?="left" missing?=false open?="both"',
    "numeric": 'name kind edges? gaps?=[] unit?="" suffix?="" censored?=false',
    "truth": "name kind gaps?=[] values?=[]", "categories": "name kind values ordered?=false gaps?=[] as_text?=false"}
FINDING = "; finding: who records all messages and breaks X25519 later reads each party's sums"
KEEPING = {"constant-feature", "unit-norm", "scale", "centre", "centre-rows"}  # maps of so many entries, or one more
DECLARED, DRAWN = ["numeric", "dates", "truth", "categories"], "seed inputs features"  # of a raw table; of a draw
STEPS = {  # public maps of one row; transport is fitted on a client's own
    "random-fourier": f"{DRAWN} bandwidth=1", "sparse-projection": f"{DRAWN} sparsity=3", "constant-feature": "value",
    "random-relu": f"{DRAWN} keep_inputs=false", "cells": "columns signs=7 ramp=true bits=12 missing?",
    "orthogonal-projection": DRAWN, "gaussian-projection": DRAWN, "by-arm": "column", "unit-norm": "", "scale": "per",
    "transport": "features reference strength", "levels": "columns=[] outcomes=[] spread?=[]", "centre": "centre",
    "centre-rows": ""}
INTEGERS = {  # minimum and maximum
    "version": (1, 1), "features": (2, MOST), "classes": (2, MOST), "targets": (1, MOST), "folds": (1, 64),
    "grid_bits": (2, 20), "groups": (1, 64), "rounds": (1, 3), "n_max": (1, MOST), "expected_records": (1, MOST),
    "clients": (2, 1 << 24), "min_survivors": (1, MOST), "max_records": (1, MOST), "colluders": (0, MOST),
    "max_records_per_client": (1, MOST), "max_records_per_person": (1, MOST), "min_count": (0, MOST),
    "spare_bits": (1, 32), "most_records": (1, MOST), "most_runs": (1, 10_000), "expected_events": (1, MOST),
    "outcomes": (2, 8), "head_bytes": (1, 1 << 25), "score_bins": (2, 1000)}
REAL: Table = {
    **dict.fromkeys(["clip_norm", "target_bound", "target_scale", "reach", "time_unit"], (TINY, 1 / TINY)),
    "pull": (TINY, 10**9), "trim": (Fraction("0.02"), Fraction("0.8")), "delta": (Fraction("1e-15"), Fraction("0.1")),
    **dict.fromkeys(["residual_norm", "course_mu", "rate"], (TINY, 1 / TINY)), "epsilon": (Fraction("0.001"), 100),
    "probability": (Fraction("0.05"), Fraction("0.95")), "cap": (1, 1), "balance": (Fraction("0.05"), Fraction("0.5")),
    "shrinkage": (0, 1), "client_clip": (1, MOST), "person_clip": (1, MOST), "stated_epsilon": (TINY, 10**9),
    **dict.fromkeys(["low", "high"], (-10**15, 10**15))}
WORDS = {"model": "central distributed local panel", "unit": "record client person",
         "adjacency": "add-remove replace-one", "family": "logistic poisson", "graph": "auto complete robust sparse",
         "protocol": "split", "closed": "right", "level": "moments norm", "open": "above below none",
         "estimand": "ate att overlap", "times": "continuous discrete", "score": "probability margin",
         "measure": "ratio both", "excess_noise": "removed", "key_agreement": "mlkem768-x25519", "left_out": "counted",
         "errors": "robust"}
GAPS = {"effect": "weights", "score": "outcome", "ridge": "left out"}  # treatment of records without an outcome
KIND: dict[type, str] = {
    str: "statistics module event head name sha256 after registrar registrar_key page words exact",
    dict: "schema cohort privacy aggregation published validity devices merge shares bins strata",
    list: "outcome transform variables tables pulls values edges class_names feature_names among panel organisations "
    "outcome_names subgroups cuts numbers by", bool: "nonnegative reference other missing by_class"}
# read what the plan publishes
READ = "logistic poisson hazard trial ratio effect gradients calibration party-update rounds scoring"
# What is sent: its letters, the matrices of them, which are symmetric and have sqrt(2) times the noise on the diagonal,
# and what a letter spends in percent where a plan names no shares; letters without a number divide the rest.
SENT: dict[str, tuple[str, str, Table]] = {
    "classes": ("NABSD", "BS", {"N": 2, "A": 85}), "mean": ("x", "", {}), "gaussians": ("NxV", "V", {"N": 2, "x": 48}),
    "ridge": ("Ghq", "G", {"G": 50, "h": 48, "q": 2}), "within": ("NLAB", "LB", {"N": 2, "L": 5, "A": 80}),
    "counts": ("T", "", {}), "scoring": ("T", "", {}), "party-update": ("P", "", {}), "numbers": ("Txq", "", {}),
    "sites": ("NQ", "Q", {"N": 2}), "trial": ("Ne", "", {"N": 14, "e": 86}), "party-softmax": ("P", "", {}),
    "calibration": ("t", "", {}), "poisson": ("gH", "H", {"g": 70, "H": 30}), "hazard": ("gH", "H", {"g": 70, "H": 30}),
    "gradients": ("gk", "", {"g": 99, "k": 1}), "logistic": ("gH", "H", {"g": Fraction("59.1"), "H": Fraction("40.9")}),
    "rounds": ("NM", "M", {"N": 2}), **dict.fromkeys(("effect", "ratio"), ("NWe", "", {"N": 12, "W": 12, "e": 76}))}
PRODUCTS: Table = {  # a count, a vector or a product of two, of a record's cell or of all; "=": of equal places only
    "classes": {"N": ("cell",), "A": ("cell", "x"), "B": ("", "x", "x"), "S": ("cell", "x", "x"), "D": ("=", "x", "x")},
    "ridge": {"G": ("cell", "x", "x"), "h": ("cell", "x", "b"), "q": ("=", "b", "b")}, "calibration": {"t": ("", "v")},
    "score": {"g": ("", "x", "r"), "H": ("", "a", "a"), "J": ("", "c", "c")}, "party-update": {"P": ("", "a")},
    "hazard": {"g": ("", "x", "r"), "H": ("", "a", "a"), "J": ("", "c", "c")}, "gaussians": {},
    "gradients": {"g": ("", "r", "x"), "k": ("", "k")},
    "effect": {"N": ("cell",), "O": ("", "u"), "W": ("cell", "o"), "e": ("cell", "t"),
               **{s: ("cell", s) for s in "bfghijkl"}}, "party-softmax": {"P": ("", "a")}, "mean": {"x": ("", "x")}}
HELD: dict[str, tuple[str, Any]] = {  # vectors of a record and what counts its cells; of a party one class is a
    "classes": ("x", "classes"), "ridge": ("xb", "folds"), "within": ("x", "classes"), "sites": ("x", 2),
    "mean": ("x", 2), "score": ("xra", 2), "hazard": ("xra", 2), "gradients": ("xrk", 2), "calibration": ("v", 2),
    "effect": ("to", 2), "party-softmax": ("a", 2), "party-update": ("a", 2)}
OF_RECORDS = [*HELD.keys() - {"party-softmax", "party-update"}, "counts", "scoring"]
UNSIGNED = {  # no entry of a person's sums is negative; the second where no feature is negative
    "classes": ("ND", "NABSD"), "ridge": ("q", "Gq"), "mean": ("", "x"), "gradients": ("k", "k"), "effect": "NN",
    "counts": ("Tq", "Tq"), "scoring": ("T", "T"), **dict.fromkeys(("score", "calibration"), ("", ""))}
CUT = ["classes", "ridge", "counts", "score", "calibration", "effect"]  # closer than vectors of their lengths
# fmt: on


class Refused(Exception):  # noqa: N818  what it says of a certificate
    """A claim that does not hold: its name, and the reason."""


def require(held: object, claim: str, why: str) -> None:
    """Refuse the certificate by the claim's name."""
    if not held:
        raise Refused(f"{claim}: {why}")


def _number(text: str) -> Fraction:
    return Fraction(repr(float(text)))


def _integer(text: str) -> int:
    require(len(text) <= 20, "form", "an integer has too many digits")
    return int(text)


def _json(text: str) -> Any:
    def table(pairs: list[tuple[str, Any]]) -> Table:
        require(len(dict(pairs)) == len(pairs), "form", "a key stands twice")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=table, parse_float=_number, parse_int=_integer, parse_constant=_number)


def _toml(text: str) -> Table:
    text = text.removeprefix("\ufeff")
    part = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
    for parts, most in ((16, 0), (2, 1 << 12)):  # n parts make n^2 texts, and every part a kilobyte
        dotted = re.finditer(rf"(?m)(?:^|[\[{{,])(?=[ \t]*+(?:{part}\.[ \t]*+){{{parts}}})", text)
        require(sum(1 for _ in islice(dotted, most + 1)) <= most, "form", "a key has too many parts")
    return tomllib.loads(text, parse_float=_number)


def _rational(text: str) -> Fraction:
    require(len(text) <= 1000 and set(text) <= set("0123456789/"), "form", "a rational is a text like '3/4'")
    return Fraction(text)


def root(square: Fraction) -> tuple[Fraction, Fraction]:
    """Return rationals below and above a square root."""
    low = math.isqrt(square.numerator * ONE**2 // square.denominator)
    return Fraction(low, ONE), Fraction(low + 1, ONE)


def _series(first: int, y: tuple[int, int], n: int, step: int) -> tuple[int, int]:
    """Bound first (1 + y / n' (1 + y / n'' (...))), n' = n + step, n'' = n' + step, ..., in units of 1 / ONE."""
    low, high = [first], [first]
    while high[-1] > 1 or n * ONE < 2 * y[1]:
        n += step
        low.append(low[-1] * y[0] // (n * ONE))
        high.append(-(-high[-1] * y[1] // (n * ONE)))
    return sum(low), sum(high) + 1  # the terms that are left at least halve, from below one unit


def power(x: Fraction) -> tuple[int, int]:
    """Bound e**x for x >= 0, in units of 1 / ONE: x is halved until it is below 1, then squared."""
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 1)
    y = x / 2**halvings * ONE
    low, high = _series(ONE, (math.floor(y), math.ceil(y)), 0, 1)
    for _ in range(halvings):
        low, high = low**2 // ONE, -(-(high**2) // ONE)
    return low, high


def tail(s: int) -> tuple[int, int]:
    """Bound P(Z > s / ONE), in units of 1 / ONE: 1/2 - phi(s) (s + s^3 / 3 + s^5 / 15 + ...), all terms positive."""
    if s < 0:
        low, high = tail(-s)
        return ONE - high, ONE - low
    low, high = _series(s, (s * s // ONE, -(-s * s // ONE)), 1, 2)
    grown = power(Fraction(s * s, 2 * ONE**2))
    most = math.ceil(Fraction(high * ONE, grown[0]) / root(2 * PI / 10**100)[0])
    return ONE // 2 - most, ONE // 2 - math.floor(Fraction(low * ONE, grown[1]) / root(2 * (PI + 1) / 10**100)[1])


def delta_of(mu: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Bound Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2), which grows with mu."""
    require(epsilon < 40 * mu and mu < 40, "mu", "no plan has noise of such a size")
    places = [math.floor((epsilon / mu + side * mu / 2) * ONE) for side in (-1, 1)]
    near, far = ((tail(place + 1)[0], tail(place)[1]) for place in places)
    grown = power(epsilon)
    return (near[0] - Fraction(grown[1] * far[1], ONE)) / ONE, (near[1] - Fraction(grown[0] * far[0], ONE)) / ONE


def _outcomes(schema: Table) -> int:
    return len(schema["outcome_names"]) if schema["task"] == "effect" and "outcome_names" in schema else 1


def _sent(schema: Table) -> str:
    known = SENT[_row(schema)][0].replace("e", "be" if "balance" in schema else "e") + "J" * ("errors" in schema)
    return known.replace("N", "NO" if "left_out" in schema else "N") + "fghijkl"[: _outcomes(schema) - 1]


def _percent(schema: Table) -> Table:
    """Several outcomes divide one outcome's share; robust errors take 5 % of what the others share."""
    percent, several = SENT[_row(schema)][2], Fraction(1, _outcomes(schema))
    if "errors" in schema:
        return {**{s: part * Fraction(95, 100) for s, part in percent.items()}, "J": 5}
    if schema["task"] != "effect":
        return percent
    balance = sum((schema[s] for s in ("balance",) if s in schema), ZERO)
    parts = {s: percent[s] if s in "NW" else percent["e"] * several for s in _sent(schema)}
    parts = {s: 100 * balance if s == "b" else part * (1 - balance) for s, part in parts.items()}
    return {s: 50 if s == "O" else part / 2 for s, part in parts.items()} if "O" in parts else parts


def _listed(table: Table, name: str) -> list[Any]:
    return list(table[name]) if name in table else []


def _tables(schema: Table) -> list[list[Any]]:
    """Return the count tables, and each number's own tables of groups and of missing values."""
    return [*schema["tables"], *([*_listed(n, "by"), n["name"]] for n in _listed(schema, "numbers"))]


def _blocks(schema: Table) -> int:
    cells = math.prod(_cells(_listed(schema, "subgroups")).values())
    return int(schema["groups"]) if schema["task"] == "effect" and "groups" in schema else cells


def bound(schema: Table, weights: Mapping[str, Fraction], adjacency: str, held: int) -> Fraction:
    """Return the largest sum_s weight_s |v_s - v'_s|^2 in squared wire steps: docs/sensitivity.md in rationals.

    ``held``: maximum number of records of a client unit with sums that are not over records (sites).
    """
    swap, row = {"add-remove": False, "replace-one": True}[adjacency], _row(schema)
    w = {**dict.fromkeys(_sent(schema), ZERO), **weights}  # letters that are not named are not released
    require(set(w) == {*_sent(schema)}, "form", f"no bound of these letters of {row} is known")
    return Fraction(BOUNDS[row](schema, w, swap, held))


def _row(schema: Table) -> str:
    task = str(schema["task"])
    if task == "effect":
        trial = "probability" in schema and "missing" not in schema  # where no weights are sent
        return "ratio" if "measure" in schema else "trial" if trial else "effect"
    rest = "rounds" if task == "gaussians" and schema["reference"] else "numbers" if "numbers" in schema else task
    return str(schema["family"]) if task == "score" else rest


def _classes(schema: Table, w: Table, swap: bool, _: int) -> Any:
    square = Fraction(4 ** schema["grid_bits"])
    first, second = w["A"] * square, (w["B"] + w["S"] + w["D"]) * square**2
    add = COUNT**2 * w["N"] + first + second
    opposed = (first + 2 * second) ** 2 / (2 * second) if first < 2 * second else 4 * first
    return (2 * add if schema["nonnegative"] else max(2 * add, opposed)) if swap else add


def _ridge(schema: Table, w: Table, swap: bool, _: int) -> Any:
    G, h, q = (w[s] * 16 ** schema["grid_bits"] for s in "Ghq")
    other = 2 * (G + h + q) if schema["folds"] > 1 else ZERO
    return max(other, _exchanged(G, h, q)) if swap else G + h + q


def _counts(schema: Table, w: Table, swap: bool, _: int) -> Any:
    """Bound tables, and numbers z and z^2 with |z| <= 1.

    Two values are d apart, and at most 2 - d from each other's opposite; in two groups, or with one missing, both count
    in full.
    """
    tables = len(schema["tables"] if schema["task"] == "counts" else _scored(schema))
    numbers, T = _listed(schema, "numbers"), COUNT**2 * w["T"]
    x, q = (w[s] * size if numbers else ZERO for s, size in (("x", 4**12), ("q", 16**12)))
    alone = T * (tables + len(numbers)) + (x + q) * len(numbers)  # also beside a record that is left out
    d, D = ((3 - each) / 2 for each in (root(1 - 2 * x / q)[::-1] if 0 < 2 * x < q else [Fraction(1)] * 2))
    near = max(4 * x, D**2 * (x + q * (2 - d) ** 2))
    far = ((2 * (T + x + q) if "by" in n else 2 * T + x + q if "missing" in n else ZERO) for n in numbers)
    return max(alone, 2 * T * tables + sum((max(near, each) for each in far), ZERO)) if swap else alone


def _scored(schema: Table) -> list[int]:
    """Return the cells of each table of a score.

    Two classes: label by score. More: label by predicted, right by score, and that of every class.
    """
    bins, classes = schema["score_bins"], schema["classes"]
    return [2 * bins] if classes == 2 else [classes**2] + [2 * bins] * (1 + classes * schema["by_class"])


def _sites(schema: Table, w: Table, swap: bool, held: int) -> Any:
    """Bound a party of any size, or a client: its matrix is no longer than its records, and truncated toward zero."""
    moved, d = (held or 4) * Fraction(4 ** schema["grid_bits"]), schema["features"]
    count, cut = COUNT**2 * w["N"] * (held or 1) ** 2, 0 if held and not swap else d
    far = w["Q"] * (root(2 * moved**2)[1] + 2 * d) ** 2 if swap else ZERO
    alone = count + w["Q"] * (moved + cut) ** 2  # also one record that is left out, exchanged for another
    return max(far, alone)


def _within(schema: Table, w: Table, swap: bool, _: int) -> Any:
    """Bound sums less a party's own mean, truncated to integer steps."""
    square, d, times = Fraction(4 ** schema["grid_bits"]), schema["features"], 1 + swap
    t = schema["n_max"] / (schema["n_max"] + _float(schema["pull"]))
    far = {"L": root(COUNT**2 * (1 + 3 * t * t))[1], "A": root(square * (1 + 2 * t + 5 * t * t))[1]}
    far["B"] = square * (1 + 3 * t)
    steps = {"L": schema["classes"], "A": root(Fraction(schema["classes"] * d))[1], "B": d}
    return times * COUNT**2 * w["N"] + sum((w[s] * (times * (far[s] + steps[s])) ** 2 for s in far), ZERO)


def _float(number: Any) -> Fraction:
    """A machine computes with the float64 for a plan's decimal."""
    return Fraction(float(number))


def _score(schema: Table, w: Table, swap: bool, _: int) -> Any:
    g, H = (w[s] * 16 ** schema["grid_bits"] for s in "gH")
    return _logistic(g, H) * (1 + swap) + 2 * g * swap + _second(schema, w, swap)


def _poisson(schema: Table, w: Table, swap: bool, _: int) -> Any:
    g, H = (w[s] * 16 ** schema["grid_bits"] for s in "gH")
    between = 2 * g + 2 * H + g**2 / (2 * H) if g <= 2 * H and H else ZERO
    return (max(4 * g + H, between) if swap else g + H) + _second(schema, w, swap)


def _second(schema: Table, w: Table, swap: bool) -> Any:
    """Bound the score's second moment: two positive semidefinite matrices are at most as far apart as orthogonal."""
    return w["J"] * 16 ** schema["grid_bits"] * (1 + swap) if "J" in w else ZERO


def _hazard(schema: Table, w: Table, swap: bool, _: int) -> Any:
    """Bound a person over all periods, in units of the cap."""
    known = (4 * w["g"] + 2 * w["H"] if swap else w["g"] + w["H"]) * 16 ** schema["grid_bits"]
    return known + _second(schema, w, swap)


def _gradients(schema: Table, w: Table, swap: bool, _: int) -> Any:
    return w["g"] * 16 ** schema["grid_bits"] * (4 if swap else 1) + w["k"] * 4 ** schema["grid_bits"]


def _effect(schema: Table, w: Table, swap: bool, _: int) -> Any:
    """Bound a record that adds 1 to N, at most 1 to W, and (t, 1 - t^2) to each outcome.

    Each pair has norm at most 1, and two are at most 2 apart. Against an excluded record one record counts, in two
    subgroups both. An excluded record adds 1 to one entry of O alone.
    """
    square = 4 ** schema["grid_bits"]
    weight, gone = (w[s] * size if s in w else ZERO for s, size in (("W", square), ("O", COUNT**2)))
    influence = sum((w[s] for s in w if s not in "NOW"), ZERO) * square
    alone = COUNT**2 * w["N"] + weight + influence
    one, k = 2 ** schema["grid_bits"], _deepest(schema)
    far = Fraction((one + k) ** 2 + ((square - k * k) // one) ** 2, square) if "measure" in schema else 1
    moved = max(weight * far + 4 * influence, 2 * alone * (_blocks(schema) > 1), alone + gone, 2 * gone)
    return moved if swap else max(alone, gone)


def _deepest(schema: Table) -> int:
    """Return how far an influence on the untreated mean can be below 0, in steps; 0 without a ratio."""
    if "measure" not in schema:
        return 0
    chances = schema["probability"] if type(schema["probability"]) is list else [schema["probability"]]
    return int(_float(max(chances)) * 2 ** schema["grid_bits"])


def _gaussians(schema: Table, w: Table, swap: bool, _: int) -> Any:
    require(not swap, "unit", "no sensitivity is proved for it")
    power = {"N": Fraction(COUNT**2), "x": 4 ** schema["grid_bits"]}
    return sum((w[s] * (power[s] if s in power else 16 ** schema["grid_bits"]) for s in w), ZERO)


def _calibration(schema: Table, w: Table, swap: bool, _: int) -> Any:
    R = 2 ** schema["grid_bits"]
    rest = R - R // schema["classes"]
    return w["t"] * ((R + rest) ** 2 + rest**2 if swap else max(R**2, 2 * rest**2))


def _vector(schema: Table, w: Table, swap: bool, _: int) -> Any:
    """Bound one vector; two are opposed at most, or orthogonal without negative entries."""
    far = (2 if schema["nonnegative"] and "x" in w else 4) if swap else 1
    return sum(w.values()) * 4 ** schema["grid_bits"] * far


# fmt: off
BOUNDS: dict[str, Callable[[Table, Table, bool, int], Any]] = {
    "classes": _classes, "ridge": _ridge, "sites": _sites, "within": _within, "logistic": _score, "poisson": _poisson,
    "hazard": _hazard, "gradients": _gradients, "calibration": _calibration, "gaussians": _gaussians,
    "rounds": _gaussians, "trial": _effect, "ratio": _effect, "effect": _effect, "counts": _counts, "numbers": _counts,
    "scoring": _counts, **dict.fromkeys(("mean", "party-softmax", "party-update"), _vector)}
# fmt: on


def _logistic(score: Fraction, information: Fraction) -> Fraction:
    """Maximise score p^2 + information p^2 (1 - p)^2 over p."""
    if not score or 8 * score > information:
        return score or information / 16
    high, low = ((3 - each) / 4 for each in root(1 - 8 * score / information))
    return max(score, score * high**2 + information * (high * (1 - low)) ** 2)


def _exchanged(g: Fraction, h: Fraction, q: Fraction) -> Fraction:
    """Maximise 2 g (1 - c^2) + h (1 + t^2 + 2 c t) + q (1 - t^2)^2 over c, t at its three possible points."""
    inside, peaks = [(1 - each) / 2 for each in root(1 - 2 * h / q)] if q > 2 * h else [ZERO, ZERO], []
    for high, low in ((ZERO, ZERO), (Fraction(1), Fraction(1)), inside):
        c, C = (min(Fraction(1), h * t / (2 * g)) if g else Fraction(1) for t in (low, high))
        peaks.append(2 * g * (1 - c**2) + h * (1 + high**2 + 2 * C * high) + q * (1 - low**2) ** 2)
    return max(peaks)


def _sums(schema: Table, records: list[Table]) -> dict[str, Counter[Any]]:
    out: dict[str, Counter[Any]] = {letter: Counter() for letter in _sent(schema)}
    match schema["task"]:
        case "counts":
            for record, (place, table) in product(records, enumerate(_tables(schema))):
                out["T"][place, *(record["values"][name] for name in table)] += COUNT * record["times"]
            for record, n, power in product(records, _listed(schema, "numbers"), (1, 2)):
                group = n["name"], *(record["values"][name] for name in _listed(n, "by"))
                out["xq"[power - 1]][group] += record["steps"][n["name"]] ** power * record["times"]
        case "scoring":
            for record in records:
                out["T"].update(dict.fromkeys(enumerate(record["places"]), COUNT * record["times"]))
        case "sites":
            for party in {record["cell"] for record in records}:
                _take(schema, [record for record in records if record["cell"] == party], out)
        case "within":
            _take(schema, records, out)
        case task:
            for record, letter in product(records, (letter for letter in PRODUCTS[task] if letter in out)):
                (cell, *names), gone = PRODUCTS[task][letter], "u" in record and record["u"] != []
                for each in product(*(record[name] for name in names)):
                    if (cell != "=" or each[0][0] == each[1][0]) and not (gone and letter == "N"):
                        key = (record["cell"] if cell else 0, *(index for index, _ in each if letter != "q"))
                        size = COUNT if letter in "NO" else math.prod(v for _, v in each)
                        out[letter][key] += record["times"] * size
    return out


def _take(schema: Table, records: list[Table], out: dict[str, Counter[Any]]) -> None:
    """Add one party's sums: z z' summed, less s s' / (n + pull), truncated toward zero entry by entry."""
    n, pooled = sum(record["times"] for record in records), schema["task"] == "sites"
    total: Counter[Any] = Counter()
    for record in records:
        out["N"][0 if pooled else record["cell"]] += COUNT * record["times"]
        record["z"] = Counter(dict(record["x"]) if pooled else {("y", record["cell"]): 1, **dict(record["x"])})
        for i, value in record["z"].items():
            total[i] += record["times"] * value
    pull = schema["pulls"][0] if pooled else schema["pull"]
    held = n + _float(pull) * (1 if pooled else Fraction(max(n, schema["n_max"]), schema["n_max"]))
    for i, j in product(total, total):
        plain = sum(record["times"] * record["z"][i] * record["z"][j] for record in records)
        labels = isinstance(i, tuple) + isinstance(j, tuple)
        if labels != 1 or isinstance(i, tuple):  # A once
            within = plain - total[i] * total[j] / held
            out["Q" if pooled else "BAL"[labels]][i, j] += int(within * (COUNT if labels == 2 else 1))


def _cells(variables: list[Table]) -> dict[str, int]:
    several = ((v, len(v["values"]) if "values" in v else 1 if "low" in v else len(v["edges"]) - 1) for v in variables)
    return {v["name"]: size + sum(name in v for name in ("other", "missing")) for v, size in several}


def _belongs(schema: Table, record: Table) -> bool:
    """Return whether the schema admits this record, or one that adds it at some published weights."""
    task, fine = schema["task"], type(record["times"]) is int and 1 <= record["times"] <= 10**12
    if task == "counts":
        cells, values = _cells(schema["variables"] + _listed(schema, "numbers")), record["values"]
        steps = record["steps"] if "numbers" in schema else {}
        fine &= set(record) == {"times", "cell", "values", *(["steps"] if steps else [])} and record["cell"] == 0
        fine &= set(values) == set(cells) and set(steps) == {n["name"] for n in _listed(schema, "numbers")}
        fine = fine and all(type(v) is int and 0 <= v < cells[name] for name, v in values.items())
        return fine and all(type(z) is int and abs(z) <= 2**12 * (1 - values[name]) for name, z in steps.items())
    if task == "scoring":
        each, sizes = record["places"], _scored(schema)
        fine &= set(record) == {"times", "cell", "places"} and record["cell"] == 0 and len(each) == len(sizes)
        return fine and all(type(v) is int and 0 <= v < size for v, size in zip(each, sizes, strict=True))
    radius, (names, places, width) = 2 ** schema["grid_bits"], _held(schema)
    fine &= type(record["cell"]) is int and 0 <= record["cell"] < places
    fine &= set(record) == {"times", "cell", "x", *names, *("my" if task in ("score", "hazard") else "")}
    positive = "k" * (task != "effect") + "x" * ("nonnegative" in schema and schema["nonnegative"] is True)
    for name in {"x", *names}:
        require(type(record[name]) is list and len(record[name]) <= 8, "pair", "a vector is no list, or long")
        vector, least = dict(record[name]), 0 if name in positive else -radius
        least = -_deepest(schema) if name == "o" else least
        fine &= len(vector) == len(record[name]) and all(type(n) is int for pair in vector.items() for n in pair)
        fine &= sum(value**2 for value in vector.values()) <= (2 if name == "v" else 1) * radius**2
        fine &= all(0 <= place < width[name] and value >= least for place, value in vector.items())
    if task == "calibration":
        first, *gains = (Counter(dict(record["v"]))[place] for place in range(11))  # [right] - P, up to 1 - P
        sure = (radius // schema["classes"] <= P <= radius - sum(gains) for P in (radius - first, -first))
        fine &= min(gains) >= 0 and any(sure)
    if task == "effect":  # 1 - t^2 from t itself, and an influence of records that weigh alone
        gone = record["u"] if "u" in names else []
        fine &= not gone or (gone[0][1] == len(gone) == 1 and not any(record[name] for name in {*names} - {"u"}))
        for name in (name for name in names if name not in "bu" and (name != "o" or "measure" in schema)):
            t, s = (Counter(dict(record[name]))[place] for place in range(2))
            fine &= s >= 0 and s * radius <= radius**2 - t**2 and (bool(record["o"]) or not t or not width["o"])
    if task == "score":  # r and a a' at one and the same mean m, in steps of 2**-20 of the largest outcome
        m, y, one, linear = record["m"], record["y"], 2**20, schema["family"] == "poisson"
        fine &= type(m) is type(y) is int and 0 <= m <= one and 0 <= y <= one and (linear or y in (0, one))
        fine &= sum(abs(value) for _, value in record["r"]) * one <= radius * abs(y - m)
        fine &= sum(v**2 for _, v in record["a"]) * one**2 <= radius**2 * m * (one if linear else one - m)
        fine &= "c" not in names or sum(v**2 for _, v in record["c"]) <= sum(abs(v) for _, v in record["r"]) ** 2
    if task == "hazard":  # one period seen whole, e^m - 1 >= m (1 + m / 2 + m^2 / 6); at the event r is 1 at the most
        m, y, one = record["m"], record["y"], 2**20
        fine &= type(m) is type(y) is int and 0 <= m <= one and y in (0, one)
        fine &= all(place == 0 and value * (1 if y else -1) >= 0 for place, value in record["r"])
        fine &= sum(abs(value) for _, value in record["r"]) * one <= radius * (y or m)
        fine &= sum(v**2 for _, v in record["a"]) * (6 * one**2 + 3 * one * m + m**2) <= 6 * radius**2 * m * one
        fine &= "c" not in names or sum(v**2 for _, v in record["c"]) <= sum(abs(v) for _, v in record["r"]) ** 2
    return fine


def _held(schema: Table) -> tuple[str, int, Table]:
    """Return a record's vectors, the number of cells, and each vector's length."""
    (names, places), task, d = HELD[schema["task"]], schema["task"], schema["features"]
    names += "fghijkl"[: _outcomes(schema) - 1] + "b" * ("balance" in schema) + "u" * ("left_out" in schema)
    names += "c" * ("errors" in schema)
    rows, classed = [schema[name] for name in ("classes",) if name in schema], "classes" in schema
    places = _blocks(schema) if task == "effect" else places if places == 2 else schema[places]
    width = {"a": d, "c": d, "r": max([1, *rows]), "k": 1, "v": 11}
    width["b"] = schema["targets"] if "targets" in schema else d // 2
    o = 2 * ("measure" in schema) or int(_row(schema) == "effect")
    width |= {**dict.fromkeys([s for s in "t" + names[2:] if s not in "bu"] if task == "effect" else "", 2), "o": o}
    width["x"], width["u"] = (d + (task == "gradients" and classed)) if "x" in names else 0, 6
    return names, places, width


def _entries(schema: Table, letter: str) -> int:
    """A matrix counts both sides of the diagonal."""
    if schema["task"] == "counts":
        cells, numbers = _cells(schema["variables"] + _listed(schema, "numbers")), _listed(schema, "numbers")
        held = _tables(schema) if letter == "T" else [_listed(n, "by") for n in numbers]
        return sum(math.prod(cells[name] for name in table) for table in held)
    (cell, *names), (_, places, width) = PRODUCTS[schema["task"]][letter], _held(schema)
    of = names[: 1 if cell == "=" else 3] if letter != "q" else []
    return int(math.prod(width[name] for name in of) * (places if cell else 1))


def _parts(plan: Table) -> Iterator[tuple[Table, list[tuple[str, str, str]], str]]:
    """Yield a plan's tables, each with keys and name; one by one, so that the reader may fill each in."""

    def part(table: Table, keys: str, name: str) -> tuple[Table, list[tuple[str, str, str]], str]:
        return table, [key.partition("=") for key in keys.split()], name

    yield part(plan, KEYS["plan"], "plan")
    yield from (part(plan[name], KEYS[name], name) for name in KEYS if name in plan)
    schema = plan["schema"]
    require("task" in schema and schema["task"] in SCHEMAS, "plan", "no bound of such a schema is known")
    yield part(schema, f"task {SCHEMAS[schema['task']]}", "schema")
    for step in schema["transform"]:
        require("kind" in step and step["kind"] in STEPS, "plan", "no such transform is known")
        yield part(step, f"kind {STEPS[step['kind']]}", "transform")
        for column in (each for name in ("columns", "outcomes") for each in _declared(step, name)):
            require("kind" in column and column["kind"] in DECLARED, "plan", "no such column is known")
            yield part(column, KEYS[column["kind"]], "transform")
    for key in ("variables", "subgroups", "numbers"):
        for each in _listed(schema, key):
            yield part(each, KEYS[key if key == "numbers" else "edges" if "edges" in each else "values"], "variable")
    for name in sorted({"bins", "strata"} & {*schema}):
        yield part(schema[name], KEYS["bins" if name == "bins" else "values"], "variable")


def _declared(step: Table, name: str) -> list[Any]:
    names = step[name] if step["kind"] in ("cells", "levels") and name in step else []
    require(type(names) is list, "plan", "no plan declares so")
    return list(names)


def _fill(plan: Table) -> Table:
    """Write out what a plan file omits, and omit what a certificate's tables do."""
    for table, keys, _ in _parts(plan):
        for name, usual in ((name, json.loads(usual)) for name, _, usual in keys if usual):
            if not name.endswith("?") and name not in table:
                table[name] = usual
            elif name[:-1] in table and repr(table[name[:-1]]) == repr(usual):
                del table[name[:-1]]
    schema = plan["schema"]
    if "features" not in schema and schema["task"] != "counts" and _width(schema):
        schema["features"] = _width(schema)
    return plan


def _checked_form(plan: Table) -> Table:
    for table, keys, where in _parts(plan):
        known = {name.rstrip("?"): name.endswith("?") for name, _, _ in keys}
        lacking = [name for name, free in known.items() if not free and name not in table]
        require(not lacking, "plan", f"{where} lacks {', '.join(lacking)}, which is never left out")
        unknown = [name for name in table if name not in known]
        require(not unknown, "plan", f"{where} has a key that no plan has: {ascii(unknown)[:60]}")
        for name, value in table.items() if where != "transform" else ():  # public maps of a row, whatever they are
            fine = value == GAPS[table["task"]] if (where, name) == ("schema", "missing") else _fits(name, value)
            require(fine, "plan", f"{name} lies where no plan can have it")
    _check_consistent(plan, plan["schema"], plan["privacy"])
    return plan


def _fits(name: str, value: Any) -> bool:
    if name in INTEGERS:
        return type(value) is int and INTEGERS[name][0] <= value <= INTEGERS[name][1]
    if name == "probability" and type(value) is list:
        return 2 <= len(value) <= 1 << 24 and all(type(one) is not list and _fits(name, one) for one in value)
    if name in REAL:
        low, high = (0, 0) if (name, value) == ("pull", 0) else REAL[name]
        return (name, value) == ("person_clip", "average") or (type(value) in (int, Fraction) and low <= value <= high)
    if name == "texts":
        texts = [*value.values()] if type(value) is dict else []  # no promise depends on a page's texts
        return texts != [] and all(type(one) is dict and set(one) <= {"title", "questions"} for one in texts)
    named = name == "task" or any(type(value) is kind and name in names.split() for kind, names in KIND.items())
    return value in WORDS[name].split() if name in WORDS else named


def _check_consistent(plan: Table, schema: Table, privacy: Table) -> None:
    """Refuse inconsistent values where a bound, the noise or the work depends on them."""
    cohort, own = plan["cohort"], plan["aggregation"]
    fine = cohort["colluders"] < cohort["min_survivors"] <= cohort["clients"]
    fine &= ("person_clip" in privacy) == (privacy["unit"] == "person")
    for unit, most, clip in ((unit, f"max_records_per_{unit}", f"{unit}_clip") for unit in ("client", "person")):
        averaged = unit == "person" and _averaged(privacy)
        fine &= (most in privacy) == (privacy["unit"] == unit and not averaged)
        fine = fine and (averaged or clip not in privacy or (most in privacy and privacy[clip] <= privacy[most]))
    fine &= ("protocol" in own) == ("panel" in own) and (privacy["model"] != "panel" or "panel" in own)
    fine &= "excess_noise" not in own or ("panel" not in own and cohort["min_survivors"] < cohort["clients"] <= 256)
    fine &= "excess_noise" not in own or (privacy["model"] == "distributed" and own["graph"] in {"auto", "complete"})
    fine &= ("published" in plan) == (_row(schema) in READ.split())
    if "shares" in privacy:
        parts = [*privacy["shares"].values()]
        fine &= set(privacy["shares"]) == set(_letters(schema)) and {type(part) for part in parts} <= {int, Fraction}
        fine = fine and min(parts) > 0 and abs(sum(parts) - 1) <= Fraction("1.000001e-6")
    require(fine, "plan", "its parties or its promise contradict each other")
    gaps, fine = "missing" in schema, not {"missing", "targets"} <= {*schema} or schema["targets"] == 1
    match schema["task"]:
        case "counts":
            numbers, tables = _listed(schema, "numbers"), _tables(schema)
            cells, several = _cells(schema["variables"] + numbers), len(schema["variables"]) + len(numbers)
            fine = len(cells) == several and ("numbers" in schema) == bool(numbers)
            fine &= all(cells[v["name"]] >= 2 for v in schema["variables"]) and 1 <= len(tables) <= 1 << 15
            fine &= all(type(one) is list and len(one) <= 16 and 1 <= len(set(one)) == len(one) for one in tables)
            fine = fine and all((n["high"] - n["low"]) * 10**9 >= max(-n["low"], n["high"]) > 0 for n in numbers)
            fine = fine and sum(math.prod(cells[name] for name in table) for table in tables) <= 1 << 16
        case "scoring":
            fine = ("reach" in schema) == (schema["score"] == "margin") and sum(_scored(schema)) <= 1 << 16
            cuts = [*schema["cuts"]] if "cuts" in schema else []
            at = sorted({Fraction(1, 2), *(one for one in cuts if type(one) is Fraction and 0 < one < 1)})
            values = [*(schema[key] for key in ("classes", "score", "by_class", "score_bins")), cuts]
            odd = "cuts" in schema or (values[0] <= 2 and (values[2] or values[3] % 2))
            fine &= not odd or values == [2, "probability", False, len(at) + 1, at]
        case "sites":
            fine = len(schema["pulls"]) == 1 and _fits("pull", schema["pulls"][0])  # no promise covers several pulls
        case "gradients":
            fine = ("classes" in schema) != ("target_bound" in schema)
        case "hazard":
            known = [each["name"] for step in schema["transform"] for each in _declared(step, "outcomes")]
            fine = known in ([], [schema["event"]])
            fine &= "time_unit" not in schema or ("times" in schema and schema["times"] == "continuous")
            fine &= "time_unit" not in schema or not any(edge % schema["time_unit"] for edge in schema["bins"]["edges"])
        case "score":
            fine = ("target_bound" in schema) == (schema["family"] == "poisson")
            fine &= not (gaps and (schema["nonnegative"] or {"rate", "outcomes", "target_bound"} & {*schema}))
        case "effect":
            fine = (("probability" in schema) != ("trim" in schema) or gaps) and _is_range(schema["outcome"])
            terms = {"measure", "balance", "subgroups", "groups", "probability", "trim"} & {*schema}
            alone = terms == {"probability", "trim"} and _outcomes(schema) == 1
            fine &= not gaps or (alone and type(schema["probability"]) is not list and schema["trim"] * 5 >= 1)
            fine &= "trim" not in schema or schema["trim"] <= Fraction(2 + 2 * gaps, 5)
            fine &= "measure" not in schema or ("probability" in schema and _outcomes(schema) == 1)
            fine &= 1 <= _outcomes(schema) <= 8 and ("subgroups" not in schema or _divide(schema))
            fine &= "groups" not in schema or (not {"subgroups", "left_out"} & {*schema} and 6 <= _blocks(schema) <= 64)
    for step in (step for step in schema["transform"] if step["kind"] == "cells"):
        fine &= step is schema["transform"][0] and _is_short(step)
        fine &= "nonnegative" not in schema or not schema["nonnegative"]  # nothing clips its signs
        fine &= schema["task"] == "counts" or _width(schema) in (0, schema["features"])
    for columns in (name for name in ("features", "targets") if name in schema):  # or rounding leaves no ball
        fine &= "grid_bits" not in schema or schema[columns] < 4 ** (schema["grid_bits"] + 1)
    require(fine, "plan", "its statements about a record contradict each other")


def _divide(schema: Table) -> bool:
    several, names = schema["subgroups"], {each["name"] for each in schema["subgroups"]}
    fine = "feature_names" in schema and 1 <= len(names) == len(several) and names <= {*schema["feature_names"]}
    return fine and min(_cells(several).values()) >= 2 and _blocks(schema) <= 64


def _is_range(ends: list[Any]) -> Any:
    return len(ends) == 2 and {*map(type, ends)} <= {int, Fraction} and -(10**12) <= ends[0] < ends[1] <= 10**12


def _cuts(column: Table) -> int:
    """Return the number of signs of a declared column; 0 with a cell per value."""
    if column["kind"] == "truth":
        return 1
    if "values" in column:
        k = len(column["values"])
        return k - 1 if k == 2 or (k and "ordered" in column) else 0
    return len(column["edges"]) if "edges" in column else 0


def _is_short(step: Table) -> bool:
    """Return whether no row of these cells is longer than 2**bits: in integers, from J, K_j and f alone."""
    types = {type(each[name]) for each in step["columns"] for name in ("edges", "values") if name in each}
    require({int} == {type(step["signs"]), type(step["bits"])} and types <= {list}, "plan", "no plan declares so")
    require(8 <= step["bits"] <= 20 and 1 <= step["signs"] <= 64 and type(step["ramp"]) is bool, "plan", "out of range")
    J, full, square = len(step["columns"]), 4 ** step["bits"], 0
    for column in step["columns"]:
        K, ramp = max(_cuts(column), 1), step["ramp"] and column["kind"] in ("numeric", "dates")
        q, up = math.isqrt(full // (J * K * (1 + ramp))), math.isqrt(full // (J * (1 + ramp)))
        require(q >= 32, "plan", "the step of a column is too coarse")
        square += max(K * q * q + ramp * up * up, math.isqrt(full // J) ** 2)  # a value, or a gap
    return bool(square <= full)


def _width(schema: Table) -> int:
    """Return the entries of a row of cells: signs, ramp and gaps, or a cell per value, others and gaps.

    It is 0 without columns, or where later maps change their number.
    """
    kinds = [step["kind"] for step in schema["transform"]]
    if kinds[:1] != ["cells"] or not {*kinds[1:]} <= KEEPING:
        return 0
    step, more = schema["transform"][0], kinds.count("constant-feature") + int(schema["task"] == "sites")
    numbers = [each for each in step["columns"] if each["kind"] in ("numeric", "dates")]
    rest = [each for each in step["columns"] if each["kind"] not in ("numeric", "dates")]
    places = sum(max(step["signs"], _cuts(each)) + step["ramp"] + 1 for each in numbers)
    return int(places + more + sum(_cuts(each) + 1 if _cuts(each) else len(each["values"]) + 2 for each in rest))


def _letters(schema: Table) -> str:
    """Return the sent letters in wire order, without those that follow from others."""
    known = _sent(schema)
    if schema["task"] != "classes":
        return known
    sent = {*schema["statistics"]}
    require({*"NA"} <= sent <= {*known}, "form", "no bound of these letters of classes is known")
    return "".join(letter for letter in known if letter in sent - {*"BD" * ("S" in sent)})


def read(text: str, claimed: Table) -> Table:
    """Return the plan's tables, which must match both the digest and the plan file."""
    digest = hashlib.sha256(claimed["plan"].encode()).hexdigest()
    require(digest == claimed["plan_digest"], "plan_digest", "it is not that of the tables")
    stored, file = _json(claimed["plan"]), _toml(text)
    require(stored["privacy"]["model"] in WORDS["model"].split(), "model", "the plan promises nothing")
    stored, file = _checked_form(stored), _checked_form(_fill(file))
    if file["schema"]["task"] == "classes":
        file["schema"]["statistics"] = _letters(file["schema"])
    mine, theirs = (_named(tables["privacy"]) for tables in (stored, file))
    near = set(mine) == set(theirs) and all(abs(theirs[s] - part) <= TIGHT * part for s, part in mine.items())
    require(near and file == stored, "plan", "the file does not state what the digest covers")
    held, clip = _proved(stored["schema"], stored["privacy"])
    averaged, shares = _averaged(stored["privacy"]), mine or _usual(stored["schema"])
    return {**stored, "held": held, "clip": clip, "averaged": averaged, "shares": shares}


def _averaged(privacy: Table) -> bool:
    return "person_clip" in privacy and privacy["person_clip"] == "average"


def _named(privacy: Table) -> Table:
    parts = privacy.pop("shares") if "shares" in privacy else {}
    return {s: Fraction(part) / sum(parts.values()) for s, part in parts.items()}


def _usual(schema: Table) -> dict[str, Fraction]:
    letters, percent = _letters(schema), _percent(schema)
    fixed = {s: Fraction(percent[s]) / 100 if s in percent else ZERO for s in letters}
    others = [s for s in letters if s not in percent] or [max(fixed, key=fixed.__getitem__)]
    return {s: part + (1 - sum(fixed.values(), ZERO)) / len(others) * (s in others) for s, part in fixed.items()}


def _proved(schema: Table, privacy: Table) -> tuple[int, Any]:
    """Return a client's records and the unit's clip, 0 for none, if a sensitivity is proved for the unit."""
    client, local = privacy["unit"] == "client", any(step["kind"] == "transport" for step in schema["transform"])
    held = privacy["max_records_per_client"] if client else 0
    clip = next((privacy[s] for s in ("client_clip", "person_clip") if s in privacy and not _averaged(privacy)), 0)
    usual = privacy["adjacency"] == "add-remove" if client else not local
    match schema["task"]:
        case "gaussians":
            proved = usual and client and clip
        case "party-softmax" | "party-update":
            proved = held == 1 and not clip
        case task:
            persons = {*UNSIGNED} - {"effect" * ("left_out" in schema or not _averaged(privacy))}
            proved = usual and task in (persons if privacy["unit"] == "person" else OF_RECORDS)
    require(proved, "unit", "no sensitivity is proved for it")
    return held, clip


def unit_bound(plan: Table, weights: Mapping[str, Fraction]) -> Fraction:
    """Return :func:`bound` for the plan's unit: a record, or a client or person with a limit or a clip."""
    schema, adjacency, held, clip = plan["schema"], plan["privacy"]["adjacency"], plan["held"], Fraction(plan["clip"])
    if clip:
        alone = {s: bound(schema, {s: w}, "add-remove", 0) * apart(plan, s) for s, w in weights.items()}
        return clip * clip * Fraction(max(alone[s] / plan["shares"][s] for s in alone))
    if schema["task"] == "sites":
        return bound(schema, weights, adjacency, held)
    if plan["averaged"] and adjacency == "replace-one":
        return averages(schema, weights)
    return Fraction(max(held, 1) ** 2) * bound(schema, weights, adjacency, 0)  # ``held`` steps of one record each


def averages(schema: Table, weights: Mapping[str, Fraction]) -> Fraction:
    """Bound the distance of two persons who add averages.

    They are as far apart as two records, plus one step per entry from truncation toward zero; and no further than any
    two vectors of their lengths.
    """
    opposed = bound(schema, {s: w * (2 if _unsigned(schema, s) else 4) for s, w in weights.items()}, "add-remove", 0)
    if schema["task"] not in CUT:
        return opposed
    records, cut = bound(schema, weights, "replace-one", 0), sum(w * _entries(schema, s) for s, w in weights.items())
    return min(opposed, (root(records)[1] + root(Fraction(cut))[1]) ** 2)


def _unsigned(schema: Table, statistic: str) -> bool:
    return statistic in UNSIGNED[schema["task"]]["nonnegative" in schema and schema["nonnegative"]]


def apart(plan: Table, statistic: str) -> int:
    """Return the squared distance of two clipped units over the mean of their squared lengths.

    ``|v - v'|^2 <= 2 (|v|^2 + |v'|^2)``, and half of it where no entry is negative; one alone is its own length.
    """
    schema, moved = plan["schema"], plan["clip"] and plan["privacy"]["adjacency"] == "replace-one"
    return 2 if moved and _unsigned(schema, statistic) else 4 if moved else 1


def _honest(cohort: Table, own: Table) -> list[int]:
    """Return the minimum number of honest shares, by number of opened layers; rising."""
    least, counts = cohort["min_survivors"] - cohort["colluders"], [cohort["clients"] - cohort["colluders"]]
    while "excess_noise" in own and (count := counts[-1]) > least:
        tenth = min(count - 1, (10 * count + 10) // 11)
        counts.append(least if tenth < count - 1 and 100 * count <= 115 * least else max(least, tenth))
    return counts[::-1] if "excess_noise" in own else [least]


def _remaining(squares: list[Fraction], honest: list[int]) -> Fraction:
    """Return the minimum variance over the layers that clients open, less 4 for discreteness."""
    require(len(squares) == len(honest), "sigma", "not one base and its layers")
    return min(count * (squares[0] + sum(squares[1 + opened :], ZERO)) - 4 for opened, count in enumerate(honest))


def _weight(sigma: Table, matrix: bool, model: str, honest: list[int]) -> Fraction:
    """Return 1 / sigma^2 from one party's sample; a matrix has half the variance off its diagonal."""
    require(set(sigma) == ({"diag", "off"} if matrix else {"all"}), "form", "sigma of other entries")
    require({type(value) for value in sigma.values()} <= {list if len(honest) > 1 else str}, "form", "sigma of no draw")
    draws = {name: [value] if type(value) is str else value for name, value in sigma.items()}
    drawn = {name: [_rational(value) ** 2 for value in values] for name, values in draws.items()}
    shared = model == "distributed"
    total = {name: _remaining(squares, honest) if shared else squares[0] for name, squares in drawn.items()}
    wide = not shared or min(min(squares) for squares in drawn.values()) >= 16
    require(min(total.values()) >= 64**2 * (1 - TIGHT) and wide, "sigma", "too few wire steps for the proof")
    each = [square * (2 if name == "off" else 1) for name, square in total.items()]
    require(max(each) <= min(each) * (1 + TIGHT), "sigma", "the noise is not sqrt(2) times as wide on the diagonal")
    return 1 / min(each)


def _worst(plan: Table, row: Table, weights: dict[str, Fraction], most: Fraction) -> Fraction:
    """Return the part of a bound that a worst case reaches, recomputed from its records."""
    schema, privacy = plan["schema"], plan["privacy"]
    require(set(row) == {"beside", "gone", "come", "moves"}, "form", "a worst case of other parts")
    require({type(row[side]) for side in ("beside", "gone", "come")} == {list}, "form", "not lists of records")
    records = row["beside"] + row["gone"] + row["come"]
    require(len(records) <= 8 and all(_belongs(schema, each) for each in records), "pair", "not records of the schema")
    sizes = [sum(record["times"] for record in row[side]) for side in ("gone", "come")]
    beside = schema["task"] in ("sites", "within")
    rows = int(plan["clip"]) or 1 if privacy["unit"] == "person" else 1  # of a person, which count in full
    unit = 0 if schema["task"] == "gaussians" else rows if plan["clip"] else max(plan["held"], 1)  # of a clip one
    swap = rows * int(privacy["adjacency"] == "replace-one")
    left_out = {"effect", "numbers", "sites"} & {*schema, schema["task"]}  # an exchange for a record that is in no sum
    alone = swap and left_out and "left_out" not in schema
    fits = sizes == [swap, unit] or (alone and sizes == [0, unit])
    require(fits and (not row["beside"] or (beside and not plan["held"])), "pair", "the data sets are not adjacent")
    old, new = (_sums(schema, row["beside"] + row[side]) for side in ("gone", "come"))
    moved = {s: sum((new[s][k] - old[s][k]) ** 2 for k in new[s].keys() | old[s].keys()) for s in weights}
    require({s: _rational(v) for s, v in row["moves"].items()} == moved, "pair", "it does not move what is claimed")
    reached = sum((weights[s] * moved[s] for s in weights), ZERO)
    require(reached <= most, "pair", "it moves more than the bound")
    near = beside or schema["task"] == "hazard" or (swap and plan["averaged"])  # in the limit; but for a cut
    require(reached == most or near or plan["clip"] or len(weights) > 1, "pair", "it does not attain the sensitivity")
    return reached / most if most else ZERO


def _between(claimed: Table, low: Fraction, high: Fraction, claim: str) -> None:
    require(set(claimed) == {"low", "high"}, "form", "an interval has two ends")
    least, most = _rational(claimed["low"]), _rational(claimed["high"])
    require(least <= low and high <= most, claim, "the true value may lie outside of the interval")
    require(most <= least * (1 + TIGHT), claim, "the interval is wide")


def _checked(plan_text: str, certificate_text: str) -> tuple[str, Fraction, Table]:
    """Return the sentence on a certificate that holds, mu^2 of its unit, and the plan."""
    claimed = _json(certificate_text)
    require(set(claimed) == {*CLAIMS.split()} and repr(claimed["version"]) == "1", "form", "no claims of version 1")
    plan = read(plan_text, claimed)
    schema, privacy, cohort = plan["schema"], plan["privacy"], plan["cohort"]
    honest = cohort["min_survivors"] - cohort["colluders"] if privacy["model"] == "distributed" else 1
    epsilon, delta = Fraction(privacy["epsilon"]), Fraction(privacy["delta"])
    promised = {**privacy, "epsilon": str(epsilon), "delta": str(delta), "honest_shares": honest}
    for name in ("model", "unit", "adjacency", "epsilon", "delta", "honest_shares"):
        require(repr(claimed[name]) == repr(promised[name]), name, f"the plan says {promised[name]}")
    letters, rows, one = _letters(schema), claimed["statistics"], Fraction(1)
    require(set(rows) == set(letters), "form", f"the plan sends {letters}")
    claims = [{*row} == {"sensitivity_squared", "sigma", "worst"} for row in rows.values()]
    require(all(claims) and {*claimed["joint"]} == {"worst", "mu_squared"}, "form", "not the claims of its sums")
    matrices, counts = SENT[_row(schema)][1] + "J", _honest(cohort, plan["aggregation"])  # J is a matrix of any row
    weights = {s: _weight(rows[s]["sigma"], s in matrices, privacy["model"], counts) for s in letters}
    for s in letters:
        most = unit_bound(plan, {s: one})
        _between(rows[s]["sensitivity_squared"], most, most, "sensitivity")
        _worst(plan, rows[s]["worst"], {s: one}, most)
    added = {**plan, "privacy": {"adjacency": "add-remove"}, "clip": 0, "held": 0 if plan["clip"] else plan["held"]}
    parts = [weights[s] * apart(plan, s) * unit_bound(added, {s: one}) / plan["shares"][s] for s in letters]
    require(max(parts) <= min(parts) * (1 + TIGHT), "sigma", "the noise is not in the proportions of the shares")
    square = unit_bound(plan, weights)
    reached = _worst(plan, claimed["joint"]["worst"], weights, square)
    slack, low = SLACK if privacy["model"] == "distributed" else ZERO, delta_of(root(square)[0], epsilon)[0]
    high = delta_of(root(square)[1], epsilon - 2 * slack)[1] * (1 + 2 * slack)
    require(high <= delta, "promise", "the noise does not keep epsilon and delta")
    require(low >= delta * (1 - 1000 * TIGHT), "sigma", "the noise is larger than the promise asks")
    _between(claimed["joint"]["mu_squared"], square, square, "mu")
    _between(claimed["delta_at_epsilon"], low, high, "interval")
    require(_rational(claimed["delta_at_epsilon"]["high"]) <= delta, "interval", "it ends above the promise")
    at = " at one party (at two parties twice the mu)" if privacy["unit"] == "person" else ""
    whom = f"one {privacy['unit']}{at}, {privacy['adjacency']}, while {_condition(plan)}"
    whom = f"{whom}; the worst case reaches {float(reached):.4f} of mu^2"
    end = FINDING * ("mlkem768-x25519" not in plan["aggregation"].values())
    said = f"holds: plan {claimed['plan_digest']}, epsilon {float(epsilon):g} at delta {float(delta):g} for {whom}{end}"
    return said, square, plan


def _condition(plan: Table) -> str:
    """Return the assumption of the promise: who must follow the protocol, and how many may work together."""
    cohort, own = plan["cohort"], plan["aggregation"]
    noise = {
        "central": "the server adds its noise and keeps the exact sum secret; masks hide each party's sums while ",
        "local": "the party itself follows the protocol, whatever all others do; masks hide each party's sums while ",
        "distributed": "",
        "panel": "",
    }
    first = noise[plan["privacy"]["model"]]
    several = f"at most {cohort['colluders']} of {cohort['clients']} parties work with"
    helped = several if cohort["colluders"] else "no party works with"
    if "panel" in own:
        return f"{first}leader and helpers do not all work together and {helped} them"
    whole = own["graph"] == "complete" or (own["graph"] == "auto" and cohort["clients"] <= 256)
    server = "the server follows the protocol and " * (own["graph"] == "sparse")
    end = "" if whole else ", chosen without knowledge of the random graph"
    committee = " and its committee" * (not whole and cohort["clients"] > 1024)
    return f"{first}{server}{helped} the server{end}{committee}"


def check(plan_text: str, certificate_text: str) -> str:
    """Return one sentence on a certificate that holds.

    Raises:
        Refused: a claim does not hold, or the texts are no plan and its certificate.
    """
    try:
        require(len(plan_text) <= MOST_OF_A_PLAN and len(certificate_text) <= MOST_BYTES, "form", "a text is too long")
        return _checked(plan_text, certificate_text)[0]
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"form: no plan and its certificate ({type(error).__name__})") from None


class Composition(NamedTuple):
    """All sessions of a course together: mu^2 of its unit, and the promise of the course's file."""

    square: Fraction
    slack: Fraction
    epsilon: Fraction
    delta: Fraction
    whom: str

    @property
    def roots(self) -> tuple[Fraction, Fraction]:
        """mu, from below and from above."""
        return root(self.square)


def composition(course_text: str, sessions: list[Table]) -> Composition:
    """Check each session's certificate, and add up mu^2 (Dong, Roth and Su 2022, corollary 1).

    Raises:
        Refused: a session's certificate does not hold, or sessions differ in the unit that they protect.
    """
    require(len(course_text) <= MOST_OF_A_PLAN, "form", "a text is too long")
    tables = _toml(course_text)
    require("promise" in tables, "form", "the course's file has no promise")
    promise = tables["promise"]
    require(set(promise) == {"epsilon", "delta"}, "form", "the course's file has no promise of epsilon and delta")
    require(all(type(each) in (int, Fraction) for each in promise.values()), "form", "a promise is two numbers")
    epsilon, delta = (Fraction(promise[name]) for name in ("epsilon", "delta"))
    require(0 < epsilon <= 100 and 0 < delta < 1, "form", "the course's promise is out of range")
    require(sessions, "form", "there is no session")
    require(all(len(each["plan"]) <= MOST_OF_A_PLAN for each in sessions), "form", "a text is too long")
    checked = [_checked(each["plan"], each["certificate"]) for each in sessions]
    plans = [plan for _, _, plan in checked]
    units = [{k: v for k, v in p["privacy"].items() if k not in ("epsilon", "delta", "shares")} for p in plans]
    require(all(unit == units[0] for unit in units), "unit", "the sessions do not protect the same unit alike")
    square = sum((square for _, square, _ in checked), ZERO)
    slack = SLACK * len(plans) if units[0]["model"] == "distributed" else ZERO
    while_ = "; and ".join(dict.fromkeys(_condition(plan) for plan in plans))
    at = " at one party (at two parties twice the mu)" if units[0]["unit"] == "person" else ""
    whom = f"one {units[0]['unit']}{at}, {units[0]['adjacency']}, while {while_}"
    whom += FINDING * any("mlkem768-x25519" not in plan["aggregation"].values() for plan in plans)
    return Composition(square, slack, epsilon, delta, whom)


def check_course(course_text: str, certificate_text: str) -> str:
    """Return one sentence on a course's certificate that holds.

    Raises:
        Refused: a claim does not hold, or the texts are no course and its certificate.
    """
    try:
        require(len(certificate_text) <= MOST_BYTES, "form", "a text is too long")
        claimed = _json(certificate_text)
        require(
            set(claimed) == {*OF_COURSE.split()} and repr(claimed["version"]) == "1", "form", "no claims of version 1"
        )
        require(re.fullmatch("[0-9a-f]{64}", claimed["course_digest"]), "form", "the course's digest is no digest")
        sessions = claimed["sessions"]
        require(all(set(each) == {"plan", "certificate"} for each in sessions), "form", "a session has two texts")
        whole = composition(course_text, sessions)
        for name, stated in (("epsilon", whole.epsilon), ("delta", whole.delta)):
            require(claimed[name] == str(stated), name, "the course's file says another")
        low = delta_of(whole.roots[0], whole.epsilon)[0]
        high = delta_of(whole.roots[1], whole.epsilon - 2 * whole.slack)[1] * (1 + 2 * whole.slack)
        require(high <= whole.delta, "promise", "the sessions together do not keep epsilon and delta")
        _between(claimed["mu_squared"], whole.square, whole.square, "mu")
        _between(claimed["delta_at_epsilon"], low, high, "interval")
        require(_rational(claimed["delta_at_epsilon"]["high"]) <= whole.delta, "interval", "it ends above the promise")
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"form: no course and its certificate ({type(error).__name__})") from None
    return (
        f"holds: {len(sessions)} sessions together, epsilon {float(whole.epsilon):g} at delta {float(whole.delta):g} "
        f"for {whole.whom}; that course {claimed['course_digest']} has no further session is for its parties to check "
        "(privstats course check)"
    )


def _is_course(text: str) -> bool:
    return re.search(r"^\[course\]\s*$", text, re.MULTILINE) is not None


def _text(name: str) -> str:
    """Return the text of a plain file: a pipe would be waited for without end, and a stated size may be wrong."""
    require(stat.S_ISREG(Path(name).stat().st_mode), "form", f"{name} is not a plain file")
    with Path(name).open("rb") as file:
        return file.read(MOST_BYTES + 1).decode()


def main(arguments: list[str]) -> int:
    """Check the named plan and certificate; return the exit code."""
    try:
        require(len(arguments) == 2, "form", "give the plan or course and its certificate")
        subject, certificate = (_text(name) for name in arguments)
        sys.stdout.write((check_course if _is_course(subject) else check)(subject, certificate) + "\n")
    except (Refused, OSError, UnicodeError) as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
