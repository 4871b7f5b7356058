"""The number tables of benchmarks/attacks/numbers.md and docs/attacks.md, from the results of ``benchmarks/attacks``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring import Row, results
from benchmarks.table import Cells, Tables, by_name
from threat_models.attack import attacks

__all__ = ["TABLES"]

_DIGITS = "digits of one class, d = 64: share of rows within 5 %"
_CONV = "conv features of digits, d = 256: share of rows within 5 %"


def membership_by_size() -> Cells:
    """benchmarks/attacks/numbers.md: membership without noise, by records per class."""
    rows = results("attacks.membership")["AUC by records per class, Gaussian records, d = 64"]
    shown = {"mean-ratio": "sums", "mean-ratio theory": "theory", "quadratic": "second moments"}
    shown |= {"quadratic theory": "theory", "span-leverage": "span and leverage"}
    lines = [["records", "per dimension", *shown.values()]]
    for row in rows:
        lines.append([f"{row['records']:,}", f"{row['records per dimension']:.2g}", *(f"{row[k]:.2f}" for k in shown)])
    return lines


def membership_on_the_ceiling() -> Cells:
    """benchmarks/attacks/numbers.md: the informed attacker, by epsilon and by releases."""
    tables = results("attacks.membership")
    lines = [["epsilon", "releases", "measured", "95 % interval", "ceiling"]]
    for row in tables["the informed attacker, d = 16, TPR at 1 %"]:
        lines.append([f"{row['epsilon']:g}", "1", *_tpr(row)])
    for row in tables["releases at epsilon 1, d = 16, TPR at 1 %"][1:]:
        lines.append(["1", str(row["releases"]), *_tpr(row)])
    return lines


def _tpr(row: Row) -> list[str]:
    return [f"{row['TPR']:.3f}", f"{row['TPR low']:.3f} to {row['TPR high']:.3f}", f"{row['ceiling']:.3f}"]


def defences() -> Cells:
    """docs/attacks.md: the same attacks under every defence."""
    rows = results("attacks.defences")["defences, digits, 30 records per class"]
    names = [key for key in rows[0] if key not in ("defence", "violated")]
    lines = [["defence", *names]]
    return [*lines, *([row["defence"], *(f"{row[name]:.2f}" for name in names)] for row in rows)]


def facts() -> Cells:
    """benchmarks/attacks/numbers.md: every attack of ``privstats attack list``, its expected and its measured value."""
    found = [*_from_sums(), *_from_membership(), *_from_models(), *_from_proofs(), *_FROM_TESTS]
    numbers = {attack.name: attack.number for attack in attacks()}
    lines = [[str(numbers[name]), f"`{name}`", *told] for name, *told in found]
    head = ["#", "attack", "target", "expected", "measured", "benchmark or test"]
    return [head, *sorted(lines, key=lambda line: int(line[0]))]


def _tested(*names: str) -> str:
    return ", ".join(f"`test_{name}.py`" for name in names)


_FROM_TESTS = (
    [
        "likelihood-ratio",
        "every statistic of every kind without noise: AUC",
        "1",
        "above .80",
        _tested("one_missing"),
    ],
    [
        "likeliest-unit",
        "a unit out of 16 without noise, by all statistics: right picks",
        "all",
        "all",
        _tested("one_missing"),
    ],
    ["event-time", "a person's time of event without noise: right picks", "all", "all", _tested("one_missing")],
    ["gradient-inversion", "row and label without noise", "all", "all", _tested("gradient_inversion")],
    ["lira", "a head of 20 records, d = 40, without noise: AUC", "above .5", "above .60", _tested("shadow_models")],
    [
        "ridge-one-record",
        "one record without noise: row and target up to a sign",
        "all",
        "all",
        _tested("regression_records"),
    ],
    [
        "synthetic-membership",
        "rows of a course at epsilon 90: AUC",
        "1",
        "above .95",
        _tested("synthetic_rows"),
    ],
    [
        "synthetic-record",
        "a unit out of 16 from rows of a course at epsilon 90: right picks",
        "all",
        "above .90",
        _tested("synthetic_rows"),
    ],
    ["ridge-targets", "known rows without noise: targets", "all", "all", _tested("regression_records")],
    ["site-means", "four sites, three pulls, without noise: means", "all", "all", _tested("site_means")],
    ["random-cohorts", "more releases than clients, without noise", "a rate", "above .90", _tested("statistical")],
    ["property-inference", "a property of many, without noise", "a rate", "above .90", _tested("scenes")],
    ["decoded-image", "a class of one, without noise: SSIM > .5", "a rate", "1.00", _tested("games")],
    [
        "protocol-lies",
        "seven lies to clients of the interactive protocol",
        "none succeeds",
        "none",
        _tested("protocol"),
    ],
    ["several-lists", "survivor lists by arc of a random graph", "none succeeds", "none", _tested("several_lists")],
    ["searched-graph", "plans that give another random graph", "none", "none", _tested("searched_graphs")],
    ["split-lies", "five lies of a leader with all helpers but one", "none succeeds", "none", _tested("split")],
    [
        "recorded",
        "one party's vector, recorded and X25519 broken",
        "none",
        "none",
        _tested("recorded"),
    ],
    ["ring-wrap", "a client fills the ring", "a coin", "a coin", _tested("protocol")],
    ["sum-check", "a client fills the sum", "a coin", "a coin", _tested("split")],
    ["canary-audit", "mu of every statistic, and of all", "at most claimed", "at most claimed", _tested("evaluate")],
)
"""Attacks whose outcome is a test and no committed number."""


def _from_sums() -> list[list[str]]:
    tables, name = results("attacks.reconstruction"), "`reconstruction`"
    few = tables["one and two records: largest error of a coordinate"]
    worst = {key: max(row[key] for row in few) for key in ("one record", "two, with S", "two, with D")}
    relu = tables["half-zero ReLU records, d = 512"][-1]
    digits = [row for row in tables[_DIGITS] if row["known"] == "not negative"]
    grid = [row for row in tables[_DIGITS] if row["known"] == "17 grey levels"]
    shown = ", ".join(f"{_rate(row)} at {row['records']}" for row in digits)
    exact = ", ".join(f"{row['certified']:.2f} at {row['records']}" for row in grid)
    conv = ", ".join(f"{_rate(row)} at {row['records']}" for row in tables[_CONV])
    pictures = results("attacks.pictures")["digits: four samples of a class, mean over pictures"]
    scores = {row["attacker"]: f"{row['PSNR']:.0f} dB, SSIM {row['SSIM']:.2f}" for row in pictures}
    return [
        ["one-record", "a class of one", "error up to 1e-9", _power(worst["one record"]), name],
        ["two-records", "a class of two, with S", "error up to 1e-9", _power(worst["two, with S"]), name],
        ["two-records-squares", "a class of two, with D", "error up to 1e-9", _power(worst["two, with D"]), name],
        ["rotation", "100 ReLU records, d = 512", "error up to 1e-8", _power(relu["largest error"]), name],
        ["rotation", "digits, d = 64", "1 at 7, .84 at 10, .38 at 15", shown, name],
        ["rotation", "conv features, d = 256", ".95 at 10, .81 at 30", conv, name],
        ["rotation-on-the-grid", "17 grey levels: certified", "a rate", exact, name],
        [
            "four-samples",
            "masking off",
            "a picture",
            scores["one client's upload (no secure aggregation)"],
            "`pictures`",
        ],
        ["four-samples", "sums of the four", "a picture", scores["sums of four (A and S, rotation)"], "`pictures`"],
        ["deep-prior", "sums of the four", "a picture", scores["sums of four, deep image prior"], "`pictures`"],
        ["four-samples", "class mean alone", "a picture", scores["sum of four (A alone)"], "`pictures`"],
    ]


def _from_membership() -> list[list[str]]:
    tables, name = results("attacks.membership"), "`membership`"
    sizes = tables["AUC by records per class, Gaussian records, d = 64"]
    asked = {"span-leverage": "span and leverage", "mean-ratio": "likelihood ratio on A", "quadratic": "S"}
    lines = []
    for key, title in asked.items():
        rows = [row for row in sizes if row[f"{key} asked"] is not None]
        wanted = ", ".join(f"{row[f'{key} asked']:g} at {row['records']:,}" for row in rows)
        lines.append([key, f"{title}: AUC", wanted, ", ".join(f"{row[key]:.2f}" for row in rows), name])
    releases = tables["releases at epsilon 1, d = 16, TPR at 1 %"]
    wanted = ", ".join(f"{row['asked']:g} at {row['releases']}" for row in releases)
    lines.append(["repeated-releases", "TPR at 1 %", wanted, ", ".join(f"{r['TPR']:.3f}" for r in releases), name])
    informed = tables["the informed attacker, d = 16, TPR at 1 %"]
    wanted = ", ".join(f"{row['asked']:g} at epsilon {row['epsilon']:g}" for row in informed)
    lines.append(["informed", "TPR at 1 %", wanted, ", ".join(f"{row['TPR']:.3f}" for row in informed), name])
    bare = _row(results("attacks.defences")["defences, digits, 30 records per class"], "defence", "masking only")
    for key in ("differencing", "joined-label", "attribute-inference"):
        lines.append([key, "without noise", "a rate", f"{bare[key]:.2f}", "`defences`"])
    return lines


def _from_models() -> list[list[str]]:
    tables, name = results("attacks.models"), "`models`"
    heads = {row["head"]: row for row in tables["heads of digits back to moments: relative error"]}
    path = [row for head, row in heads.items() if head.startswith("ridge at")]
    shown = ", ".join(f"{_power(row['measured'])} at {row['head'].split()[2]}" for row in path)
    noise = tables["noise of epsilon 1 on 4096 coordinates: AUC of the attack"]
    lies = [row for row in tables["one lying client of twenty: accuracy (%)"] if row["lie"] == "scaled sums"]
    scales = ", ".join(
        f"{row['measured']:.0f} % at {row['scale']:g}" for row in lies if row["scale"] in (1, 2, 10, 100)
    )
    first = next(row for row in lies if row["seen by"] != "none")
    seen = f"{first['seen by']}, from scale {first['scale']:g}"
    kinds = {head: "unshrunk-model" if "Led" in head or "LDA" in head else "published-model" for head in heads}
    lines = [
        [kinds[head], head, "exact", _power(heads[head]["measured"]), name]
        for head in heads
        if not head.startswith("ridge at") and "200" not in head
    ]
    return [
        *lines,
        ["penalty-path", "ridge at several penalties: error of G", "G and h", shown, name],
        ["float-digits", "Gaussian in doubles: AUC", ".93, ceiling .58", f"{noise[0]['measured']:.2f}", name],
        [
            "float-digits",
            "our integers: AUC",
            "ceiling .58",
            f"{noise[-1]['measured']:.3f}, error {noise[-1]['error']:.3f}",
            name,
        ],
        ["one-poisoner", "one client scales its sums: accuracy", "a curve", scales, name],
        ["one-poisoner", "seen by a check of the total", "which", seen, name],
    ]


def _from_proofs() -> list[list[str]]:
    """One liar of twenty under each level of proof, digits, LDA."""
    tables, name = results("attacks.poisoned_sums"), "`poisoned_sums`"
    levels = ("none", "norm", "moments", "real records")
    rows = tables["worst accuracy that one liar of twenty leaves, %"]
    worst = next(row for row in rows if (row["data"], row["head"]) == ("digits", "LDA"))
    lies = tables["lies beyond the statement, digits: reports refused"]
    refused = {level: sum(row[level] == "refused" for row in lies) for level in levels[:3]}
    counted = ", ".join(f"{refused[level]} of {len(lies)} at `{level}`" for level in levels[:3])
    shown = ", ".join(f"{worst[level]:.1f} {level}" for level in levels)
    return [
        [
            "poisoned-sums",
            "digits, one liar of twenty: worst accuracy, %",
            "10, 0 to 3, 82 to 84, 82 to 84",
            shown,
            name,
        ],
        ["poisoned-sums", "lies beyond the statement: refused", "none, all, all", counted, name],
    ]


def _row(rows: Sequence[Row], key: str, value: str) -> Row:
    return next(row for row in rows if row[key] == value)


def _rate(row: Row) -> str:
    error = row["standard error"]
    return f"{row['measured']:.2f}" + (f" ± {error:.2f}" if error else "")


def _power(value: float) -> str:
    return "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-")


TABLES: Tables = by_name(membership_by_size, membership_on_the_ceiling, defences, facts)
"""By the name in the page's marker."""
