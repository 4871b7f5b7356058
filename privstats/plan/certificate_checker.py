"""Check a budget certificate against its plan: one file that imports nothing but Python's standard library.

    python certificate_checker.py plan.toml plan.certificate.json

It shares no code with privstats and takes no number from it: sensitivities, worst cases, noise and delta are computed
anew, as rationals. Exit code 0: the certificate holds; 1: refused, by name. docs/certificate.md says what that proves.
"""

import hashlib
import json
import math
import sys
import tomllib
from collections import defaultdict
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

Table: TypeAlias = dict[str, Any]
__all__ = ["SLACK", "Refused", "check", "main"]
ONE, COUNT, ZERO, TIGHT, MOST_BYTES = 1 << 640, 4096, Fraction(0), Fraction(1, 10**9), 1 << 23
SLACK = Fraction(1, 10**20)  # of the logarithm of any probability, where noise is a sum of discrete Gaussians
PI = Fraction(31415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679)
CLAIMS = "version plan_digest plan model unit adjacency epsilon delta honest_shares statistics joint delta_at_epsilon"
# fmt: off
USUAL: Table = {  # what a plan means that leaves a key out
    "grid_bits": 12, "nonnegative": False, "transform": [], "folds": 1, "targets": 1, "pulls": [0], "groups": 1,
    "merge": {}, "target_scale": 1, "family": "logistic", "clip_norm": 1, "reference": False, "colluders": 0,
    "min_count": 0, "panel": [], "graph": "auto", "spare_bits": 0, "protocol": "interactive", "aggregation": {},
    "sparsity": 3, "keep_inputs": False, "bandwidth": 1, "other": False, "missing": False, "closed": "left"}
SHARES: dict[str, Table] = {  # percent, where a plan names none; letters that are not here divide the rest
    "classes": {"N": 2, "A": 85}, "ridge": {"G": 50, "h": 48, "q": 2}, "sites": {"N": 2}, "poisson": {"g": 70, "H": 30},
    "within": {"N": 2, "L": 5, "A": 80}, "gradients": {"g": 99, "k": 1}, "gaussians": {"N": 2, "x": 48},
    "logistic": {"g": Fraction("59.1"), "H": Fraction("40.9")}}
MATRICES = "BSGHQLMV"  # of all tasks the letters of symmetric matrices, whose diagonal has sqrt(2) times the noise
VECTORS = {"ridge": "xb", "score": "xra", "gradients": "xrk", "counts": "", "calibration": "v"}
PARTIES = ("party-softmax", "party-update")  # with the vector a, one class of a direction
PRODUCTS: Table = {  # a count, a vector or a product of two, of a record's cell or of all; "=": of equal places only
    "classes": {"N": ("cell",), "A": ("cell", "x"), "B": ("", "x", "x"), "S": ("cell", "x", "x"), "D": ("=", "x", "x")},
    "ridge": {"G": ("cell", "x", "x"), "h": ("cell", "x", "b"), "q": ("=", "b", "b")}, "calibration": {"t": ("", "v")},
    "score": {"g": ("", "x", "r"), "H": ("", "a", "a")}, "gradients": {"g": ("", "r", "x"), "k": ("", "k")},
    **{task: {"P": ("", "a")} for task in PARTIES}, "mean": {"x": ("", "x")}}
UNGRIDDED = ("counts", "sites")  # of all other tasks the tables of a certificate name grid_bits
LETTERS = {**{task: "".join(rows) for task, rows in PRODUCTS.items()}, "counts": "T", "sites": "NQ", "within": "NLAB"}
# fmt: on


class Refused(Exception):  # noqa: N818  what it says of a certificate
    """A claim that does not hold: its name, and the reason."""


def require(held: object, claim: str, why: str) -> None:
    """Refuse the certificate by the name of the claim."""
    if not held:
        raise Refused(f"{claim}: {why}")


def _number(text: str) -> Fraction:
    return Fraction(repr(float(text)))


def _json(text: str) -> Any:
    def table(pairs: list[tuple[str, Any]]) -> Table:
        require(len(dict(pairs)) == len(pairs), "form", "a key stands twice")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=table, parse_float=_number, parse_int=_number, parse_constant=_number)


def _rational(text: str) -> Fraction:
    require(len(text) <= 1000 and set(text) <= set("0123456789/"), "form", "a rational is a text like '3/4'")
    return Fraction(text)


def root(square: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above a square root."""
    low = math.isqrt(square.numerator * ONE**2 // square.denominator)
    return Fraction(low, ONE), Fraction(low + 1, ONE)


def _series(first: int, y: tuple[int, int], n: int, step: int) -> tuple[int, int]:
    """Bounds on first (1 + y / n' (1 + y / n'' (...))), n' = n + step, n'' = n' + step, ..., in units of 1 / ONE."""
    low, high = [first], [first]
    while high[-1] > 1 or n * ONE < 2 * y[1]:
        n += step
        low.append(low[-1] * y[0] // (n * ONE))
        high.append(-(-high[-1] * y[1] // (n * ONE)))
    return sum(low), sum(high) + 1  # the terms that are left at least halve, from below one unit


def power(x: Fraction) -> tuple[int, int]:
    """e**x for x >= 0 from below and above, in units of 1 / ONE: x is halved until it is below 1, then squared."""
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 1)
    y = x / 2**halvings * ONE
    low, high = _series(ONE, (math.floor(y), math.ceil(y)), 0, 1)
    for _ in range(halvings):
        low, high = low**2 // ONE, -(-(high**2) // ONE)
    return low, high


def tail(s: int) -> tuple[int, int]:
    """P(Z > s / ONE), in units of 1 / ONE: 1/2 - phi(s) (s + s^3 / 3 + s^5 / 15 + ...), all terms positive."""
    if s < 0:
        low, high = tail(-s)
        return ONE - high, ONE - low
    low, high = _series(s, (s * s // ONE, -(-s * s // ONE)), 1, 2)
    grown = power(Fraction(s * s, 2 * ONE**2))
    most = math.ceil(Fraction(high * ONE, grown[0]) / root(2 * PI / 10**100)[0])
    return ONE // 2 - most, ONE // 2 - math.floor(Fraction(low * ONE, grown[1]) / root(2 * (PI + 1) / 10**100)[1])


def delta_of(mu: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds on Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2), which grows with mu."""
    require(epsilon < 40 * mu and mu < 40, "mu", "no plan has noise of such a size")
    places = [math.floor((epsilon / mu + side * mu / 2) * ONE) for side in (-1, 1)]
    near, far = ((tail(place + 1)[0], tail(place)[1]) for place in places)
    grown = power(epsilon)
    return (near[0] - Fraction(grown[1] * far[1], ONE)) / ONE, (near[1] - Fraction(grown[0] * far[0], ONE)) / ONE


def bound(schema: Table, weights: dict[str, Fraction], adjacency: str, held: Any = 0) -> Fraction:
    """The most that sum_s weight_s |v_s - v'_s|^2 can be, in squared wire steps: docs/sensitivity.md in rationals.

    ``held``: the unit is a client of at most so many records whose sums are not sums over records (sites).
    """
    swap, w, R = adjacency == "replace-one", defaultdict(Fraction, weights), Fraction(2 ** schema.get("grid_bits", 0))
    task, square, count = schema["task"], R**2, COUNT**2 * w["N"] * (held or 1) ** 2
    if task in ("sites", "within"):
        return (0 if swap and task == "sites" else 1 + swap) * count + _divided(schema, w, square, swap, held)
    if task == "counts":
        return (1 + swap) * len(schema["tables"]) * COUNT**2 * w["T"]
    first, second = (w["A"] + w["x"] + w["k"]) * square, sum(w[s] for s in "BSDVM") * square**2
    (G, h, q, g, H), left = (w[s] * square**2 for s in "GhqgH"), R - R // (schema.get("classes") or 1)
    if task == "score" and schema["family"] == "logistic":
        return _logistic(g, H) * (1 + swap) + 2 * g * swap
    add = count + first + second + G + h + q + g + H + max(square, 2 * left**2) * w["t"] + square * w["P"]
    if not swap or task in ("gradients", "calibration", *PARTIES):
        return 4 * g + first + ((R + left) ** 2 + left**2) * w["t"] + 4 * square * w["P"] if swap else add
    if task == "score":
        return max(4 * g + H, 2 * g + 2 * H + g**2 / (2 * H) if g <= 2 * H and H else ZERO)
    if task == "ridge":
        return max(2 * add if schema["folds"] > 1 else ZERO, _exchanged(G, h, q))
    opposed = (first + 2 * second) ** 2 / (2 * second) if first < 2 * second else 4 * first
    return 2 * add if schema["nonnegative"] else max(2 * add, opposed)


def _divided(schema: Table, w: dict[str, Fraction], square: Fraction, swap: bool, held: Any) -> Fraction:
    """Sums from which a party's own mean is taken, cut to whole steps."""
    d, times = schema["features"], 1 + swap
    if schema["task"] == "sites":
        moved = (held or 4) * square
        cut = 0 if held and not swap else times * d
        return Fraction(len(schema["pulls"]) * w["Q"] * ((root(2 * moved**2)[1] if swap else moved) + cut) ** 2)
    t = schema["n_max"] / (schema["n_max"] + Fraction(float(schema["pull"])))
    far = {"L": root(COUNT**2 * (1 + 3 * t * t))[1], "A": root(square * (1 + 2 * t + 5 * t * t))[1]}
    far["B"] = square * (1 + 3 * t)
    steps = {"L": schema["classes"], "A": root(Fraction(schema["classes"] * d))[1], "B": d}
    return sum((w[s] * (times * far[s] + steps[s]) ** 2 for s in far), ZERO)


def _logistic(score: Fraction, information: Fraction) -> Fraction:
    """max over p of score p^2 + information p^2 (1 - p)^2."""
    if not score or 8 * score > information:
        return score or information / 16
    high, low = ((3 - each) / 4 for each in root(1 - 8 * score / information))
    return max(score, score * high**2 + information * (high * (1 - low)) ** 2)


def _exchanged(g: Fraction, h: Fraction, q: Fraction) -> Fraction:
    """max over c, t of 2 g (1 - c^2) + h (1 + t^2 + 2 c t) + q (1 - t^2)^2, at the three places where it can be."""
    inside, found = [(1 - each) / 2 for each in root(1 - 2 * h / q)] if q > 2 * h else [ZERO, ZERO], []
    for high, low in ((ZERO, ZERO), (Fraction(1), Fraction(1)), inside):
        c, C = (min(Fraction(1), h * t / (2 * g)) if g else Fraction(1) for t in (low, high))
        found.append(2 * g * (1 - c**2) + h * (1 + high**2 + 2 * C * high) + q * (1 - low**2) ** 2)
    return max(found)


def _sums(schema: Table, records: list[Table]) -> dict[str, dict[Any, Any]]:
    """What a data set is summed to, in wire steps: whole numbers by letter and place."""
    out: dict[str, dict[Any, Any]] = defaultdict(lambda: defaultdict(int))
    for record in records:
        for place, table in enumerate(schema.get("tables", ())):
            out["T"][place, *(record["values"][name] for name in table)] += COUNT * record["times"]
        for letter, (cell, *names) in PRODUCTS.get(schema["task"], {}).items():
            for each in product(*(record[name] for name in names)):
                if cell != "=" or each[0][0] == each[1][0]:
                    key = (record["cell"] if cell else 0, *(index for index, _ in each if letter != "q"))
                    out[letter][key] += record["times"] * (math.prod(v for _, v in each) if names else COUNT)
    for party in {"sites": {record["cell"] for record in records}, "within": {None}}.get(schema["task"], set()):
        _take(schema, [record for record in records if party in (None, record["cell"])], out)
    return out


def _take(schema: Table, records: list[Table], out: dict[str, dict[Any, Any]]) -> None:
    """Add what one party sends: z z' summed, less s s' / (n + pull), cut toward zero entry by entry."""
    n, pooled = sum(record["times"] for record in records), schema["task"] == "sites"
    total: dict[Any, Any] = defaultdict(int)
    for record in records:
        out["N"][0 if pooled else record["cell"]] += COUNT * record["times"]
        record["z"] = dict(record["x"]) if pooled else {("y", record["cell"]): 1, **dict(record["x"])}
        for i, value in record["z"].items():
            total[i] += record["times"] * value
    grows = Fraction(1) if pooled else Fraction(max(n, schema["n_max"])) / schema["n_max"]
    for pull, i, j in product(schema["pulls"] if pooled else [schema["pull"]], total, total):
        plain = sum(record["times"] * record["z"].get(i, 0) * record["z"].get(j, 0) for record in records)
        labels = isinstance(i, tuple) + isinstance(j, tuple)
        if labels != 1 or isinstance(i, tuple):  # A once
            left = plain - total[i] * total[j] / (n + Fraction(float(pull)) * grows)
            out["Q" if pooled else "BAL"[labels]][pull, i, j] += int(left * (COUNT if labels == 2 else 1))


def _belongs(schema: Table, record: Table) -> bool:
    """Whether a record of the schema can be that, or can add that at some published weights."""
    task, radius, one = schema["task"], 2 ** schema.get("grid_bits", 0), 2**20
    rows, d, b = schema.get("classes") or 1, schema.get("features", 0), schema.get("targets")
    cells = {"classes": rows, "within": rows, "ridge": schema.get("folds", 0)}.get(task, 2)
    fine = 1 <= record["times"] <= 10**12 and 0 <= record["cell"] < cells
    fine &= all(n.denominator == 1 for n in (record["times"], record["cell"], *record.get("values", {}).values()))
    for variable in schema.get("variables", ()):
        size = len(variable["values"]) if "values" in variable else len(variable["edges"]) - 1
        size += variable.get("other", False) + variable.get("missing", False)
        fine &= 0 <= record["values"][variable["name"]] < size
    width = {"x": d + (task == "gradients" and rows > 1), "a": d, "b": b, "r": rows, "k": 1, "v": 11}
    for name in VECTORS.get(task, "a" if task in PARTIES else "x"):
        vector, least = dict(record[name]), 0 if name == "k" or (name == "x" and schema.get("nonnegative")) else -radius
        fine &= sum(value**2 for value in vector.values()) <= (2 if name == "v" else 1) * radius**2
        fine &= all(0 <= place < width[name] and value >= least for place, value in vector.items())
        fine &= len(vector) == len(record[name]) <= 8 and all(n.denominator == 1 for n in (*vector, *vector.values()))
    first, *gains = (dict(record.get("v", ())).get(place, ZERO) for place in range(11))  # [right] - P, up to 1 - P
    fine &= min(gains) >= 0 and any(radius // rows <= P <= radius - sum(gains) for P in (radius - first, -first))
    if task == "score":  # r and a a' at one and the same mean m, in steps of 2**-20 of the largest outcome
        m, y, linear = record["m"], record["y"], schema["family"] == "poisson"
        fine &= 0 <= m <= one and 0 <= y <= one and (linear or y in (0, one))
        fine &= sum(abs(value) for _, value in record["r"]) * one <= radius * abs(y - m)
        fine &= sum(value**2 for _, value in record["a"]) * one <= radius**2 * (m if linear else m * (one - m) / one)
    return bool(fine)


def _same(given: Any, stored: Any, key: str = "") -> bool:
    """Whether a plan file says what the tables say, of shares to within a rounding."""
    if isinstance(given, dict) and isinstance(stored, dict):
        names = given.keys() | stored.keys()
        usual = [(given.get(name, USUAL.get(name)), stored.get(name, USUAL.get(name)), name) for name in names]
        return all(_same(one, other, "shares" if key == "shares" else name) for one, other, name in usual)
    if isinstance(given, list) and isinstance(stored, list):
        return len(given) == len(stored) and all(map(_same, given, stored))
    return bool(given == stored or (key == "shares" and abs(given - stored) <= TIGHT * stored))


def _possible(schema: Table, privacy: Table, cohort: Table) -> bool:
    """Whether what the bounds, the shares of noise and the work grow with lies where a plan can have it."""
    fine = all(schema.get(name, 1) >= 1 for name in ("features", "classes", "targets", "folds", "n_max"))
    fine &= len(schema.get("pulls", ())) <= 4 and (schema["task"] in UNGRIDDED or schema["grid_bits"] in range(21))
    fine &= min(privacy["epsilon"], privacy["delta"]) > 0 and privacy["adjacency"] in ("add-remove", "replace-one")
    fine &= 0 <= cohort.get("colluders", 0) < cohort["min_survivors"] <= cohort["clients"]
    return bool(fine and 1 <= privacy.get("client_clip", 1) <= privacy.get("max_records_per_client", 1))


def _plan(text: str, claimed: Table) -> Table:
    """The plan's tables: those that the digest is of, and that the plan file says."""
    digest = hashlib.sha256(claimed["plan"].encode()).hexdigest()
    require(digest == claimed["plan_digest"], "plan_digest", "it is not that of the tables")
    given, stored = tomllib.loads(text.removeprefix("\ufeff"), parse_float=_number), _json(claimed["plan"])
    for shares in (tables["privacy"].get("shares", {}) for tables in (given, stored)):  # a file's need not sum to 1
        shares.update({s: share / sum(shares.values()) for s, share in shares.items()})
    schema, privacy, client = stored["schema"], stored["privacy"], stored["privacy"]["unit"] == "client"
    if schema["task"] == "classes":  # in wire order, without what follows from others; an unknown letter has no place
        sent, order = {*given["schema"]["statistics"]}, LETTERS["classes"].index
        given["schema"]["statistics"] = "".join(sorted(sent - {*"BD" * ("S" in sent)}, key=order))
    require(_same(given, stored) and stored["version"] == 1, "plan", "the file does not say what the digest is of")
    require(_possible(schema, privacy, stored["cohort"]), "plan", "a number lies where no plan can have it")
    require(privacy["model"] in ("central", "distributed", "local", "panel"), "model", "the plan promises nothing")
    held, clip = (privacy.get(name, 0) if client else 0 for name in ("max_records_per_client", "client_clip"))
    local = any(step["kind"] == "transport" for step in schema["transform"])
    usual = held and privacy["adjacency"] == "add-remove" if client else privacy["unit"] == "record" and not local
    proved = {"gaussians": usual and clip, **dict.fromkeys(PARTIES, held == 1 and not clip)}.get(schema["task"], usual)
    require(proved, "unit", "no sensitivity is proved for it")
    return {**stored, "clip": clip, "held": held}


def _unit(plan: Table, weights: dict[str, Fraction], shares: dict[str, Fraction]) -> Fraction:
    """:func:`bound` for the plan's unit: a record, a client of so many records, or one clipped to so many."""
    schema, adjacency, held = plan["schema"], plan["privacy"]["adjacency"], plan["held"]
    if plan["clip"]:
        alone = (bound(schema, {s: w}, adjacency) / shares[s] for s, w in weights.items())
        return Fraction(plan["clip"]) ** 2 * max(alone)
    inside = held if schema["task"] == "sites" else 0
    return Fraction(max(held - inside, 1) ** 2) * bound(schema, weights, adjacency, inside)


def _shares(plan: Table, letters: str) -> dict[str, Fraction]:
    usual = SHARES.get(plan["schema"]["family" if plan["schema"]["task"] == "score" else "task"], {})
    fixed = {s: Fraction(usual[s]) / 100 for s in letters if s in usual}
    others = [s for s in letters if s not in usual] or [max(fixed, key=fixed.__getitem__)]
    rest = (1 - sum(fixed.values(), ZERO)) / len(others)
    return plan["privacy"].get("shares") or {s: fixed.get(s, ZERO) + (rest if s in others else 0) for s in letters}


def _weight(letter: str, sigma: Table, model: str, honest: Any) -> Fraction:
    """1 / sigma^2 of a statistic from what one party draws: off the diagonal of a matrix half of what is on it."""
    require(set(sigma) == ({"diag", "off"} if letter in MATRICES else {"all"}), "form", "sigma of other entries")
    drawn = {name: _rational(value) ** 2 for name, value in sigma.items()}
    total = {name: honest * square - 4 if model == "distributed" else square for name, square in drawn.items()}
    safe = min(total.values()) >= 64**2 * (1 - TIGHT) and (model != "distributed" or min(drawn.values()) >= 16)
    require(safe, "sigma", "too few grid steps for the proof")
    whole = [square * (2 if name == "off" else 1) for name, square in total.items()]
    require(max(whole) <= min(whole) * (1 + TIGHT), "sigma", "the noise is not sqrt(2) times as wide on the diagonal")
    return 1 / min(whole)


def _worst(plan: Table, row: Table, weights: dict[str, Fraction], most: Fraction) -> Fraction:
    """The part of a bound that a worst case reaches, recomputed from its records."""
    schema, privacy = plan["schema"], plan["privacy"]
    records = row["beside"] + row["gone"] + row["come"]
    require(len(records) <= 8 and all(_belongs(schema, each) for each in records), "pair", "not records of the schema")
    sizes = [sum(record["times"] for record in row[side]) for side in ("gone", "come")]
    beside = schema["task"] in ("sites", "within")
    unit = 0 if schema["task"] == "gaussians" else 1 if plan["clip"] else max(plan["held"], 1)  # no record, and a clip
    fits = sizes == [int(privacy["adjacency"] == "replace-one"), unit]
    require(fits and (not row["beside"] or (beside and not plan["held"])), "pair", "the data sets are not adjacent")
    old, new = (_sums(schema, row["beside"] + row[side]) for side in ("gone", "come"))
    found = {s: sum((new[s][k] - old[s][k]) ** 2 for k in new[s].keys() | old[s].keys()) for s in weights}
    require({s: _rational(v) for s, v in row["moves"].items()} == found, "pair", "it does not move what is claimed")
    reached = sum((weights[s] * found[s] for s in weights), ZERO)
    require(reached <= most, "pair", "it moves more than the bound")
    require(reached == most or beside or plan["clip"] or len(weights) > 1, "pair", "it does not attain the sensitivity")
    return reached / most if most else ZERO


def _between(claimed: Table, low: Fraction, high: Fraction, claim: str) -> None:
    least, most = _rational(claimed["low"]), _rational(claimed["high"])
    require(least <= low and high <= most, claim, "the true value may lie outside of the interval")
    require(most <= least * (1 + TIGHT), claim, "the interval is wide")


def _checked(plan_text: str, certificate_text: str) -> str:
    claimed = _json(certificate_text)
    require(set(claimed) == set(CLAIMS.split()) and claimed["version"] == 1, "form", "not the claims of version 1")
    plan = _plan(plan_text, claimed)
    schema, privacy, cohort = plan["schema"], plan["privacy"], plan["cohort"]
    honest = cohort["min_survivors"] - cohort.get("colluders", 0) if privacy["model"] == "distributed" else 1
    epsilon, delta = Fraction(privacy["epsilon"]), Fraction(privacy["delta"])
    told = {**privacy, "epsilon": str(epsilon), "delta": str(delta), "honest_shares": honest}
    for name in ("model", "unit", "adjacency", "epsilon", "delta", "honest_shares"):
        require(claimed[name] == told[name], name, f"the plan says {told[name]}")
    letters = LETTERS.get(schema["task"]) or ("NM" if schema.get("reference") else "NxV")
    letters, rows, one = schema.get("statistics", letters), claimed["statistics"], Fraction(1)
    require(set(rows) == set(letters), "form", f"the plan sends {letters}")
    shares = _shares(plan, letters)
    weights = {s: _weight(s, rows[s]["sigma"], privacy["model"], honest) for s in letters}
    for s in letters:
        most = _unit(plan, {s: one}, shares)
        _between(rows[s]["sensitivity_squared"], most, most, "sensitivity")
        _worst(plan, rows[s]["worst"], {s: one}, most)
    added = {**plan, "privacy": {"adjacency": "add-remove"}, "clip": 0, "held": 0 if plan["clip"] else plan["held"]}
    parts = [weights[s] * _unit(added, {s: one}, shares) / shares[s] for s in letters]
    require(max(parts) <= min(parts) * (1 + TIGHT), "sigma", "the noise is not in the proportions of the shares")
    square = _unit(plan, weights, shares)
    reached = _worst(plan, claimed["joint"]["worst"], weights, square)
    slack, low = SLACK if privacy["model"] == "distributed" else ZERO, delta_of(root(square)[0], epsilon)[0]
    high = delta_of(root(square)[1], epsilon - 2 * slack)[1] * (1 + 2 * slack)
    require(high <= delta, "promise", "the noise does not keep epsilon and delta")
    require(low >= delta * (1 - 1000 * TIGHT), "sigma", "the noise is larger than the promise asks")
    _between(claimed["joint"]["mu_squared"], square, square, "mu")
    _between(claimed["delta_at_epsilon"], low, high, "interval")
    require(_rational(claimed["delta_at_epsilon"]["high"]) <= delta, "interval", "it ends above the promise")
    whom = f"one {privacy['unit']}, {privacy['adjacency']}; the worst case reaches {float(reached):.4f} of mu^2"
    return f"holds: plan {claimed['plan_digest']}, epsilon {float(epsilon):g} at delta {float(delta):g} for {whom}"


def check(plan_text: str, certificate_text: str) -> str:
    """One sentence on a certificate that holds.

    Raises:
        Refused: a claim does not hold, or the texts are no plan and its certificate.
    """
    try:
        require(max(len(plan_text), len(certificate_text)) <= MOST_BYTES, "form", "a text is too long")
        return _checked(plan_text, certificate_text)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"form: no plan and its certificate ({type(error).__name__})") from None


def main(arguments: list[str]) -> int:
    """Check the plan and the certificate that are named; 0: it holds, 1: it is refused."""
    try:
        short = len(arguments) == 2 and max(Path(name).stat().st_size for name in arguments) <= MOST_BYTES
        require(short, "form", "give the plan and its certificate, of 8 MiB at most")
        sys.stdout.write(check(*(Path(name).read_text(encoding="utf-8") for name in arguments)) + "\n")
    except (Refused, OSError, UnicodeError) as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
