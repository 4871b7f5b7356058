"""The number tables of the documentation, made from the committed results, so that neither can drift.

    python -m benchmarks.tables            # say which tables differ from the results
    python -m benchmarks.tables --write    # write them anew

A table stands in a page below its marker, ``<!-- table: NAME -->``; NAME is a key of :data:`TABLES`.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import (
    alignment_tables,
    attack_tables,
    core_tables,
    engine_tables,
    imputation_tables,
    inference_tables,
    kind_tables,
    paper_tables,
    peer_tables,
    proof_tables,
    public_table_tables,
    raw_table_tables,
    refinement_tables,
    regression_tables,
    rival_tables,
    row_tables,
    sentences,
    setting_tables,
    site_level_tables,
    size_tables,
    speed_tables,
    stream_tables,
    synthetic_tables,
)
from benchmarks.measuring import Row, results
from benchmarks.table import Cells, Shown, Table, Tables, by_name
from privstats import dp
from tests.mutation.catalogue import MUTANTS

__all__ = ["DOCS", "PAGES", "TABLES", "in_page", "rewritten"]

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(
    [
        DOCS.parent / "README.md",
        *DOCS.rglob("*.md"),
        *Path(__file__).parent.rglob("*numbers.md"),
    ]
)
"""Pages that may hold markers: README, the documentation, and the pages of measurements next to the benchmarks."""
_MARKED = re.compile(r"(<!-- table: ([a-z_]+) -->\n\n?)((?:\|.*\n)+)")

NAMES = {"digits": "digits", "banking77": "BANKING77", "cifar10": "CIFAR-10", "fmnist": "Fashion-MNIST"}


def grid() -> Cells:
    """benchmarks/moments/numbers.md: what the grid costs."""
    return _by_grid("LDA accuracy (%) by grid_bits", "float64")


def grid_private() -> Cells:
    """benchmarks/moments/numbers.md: what the grid costs under privacy."""
    return _by_grid("LDA accuracy (%) by grid_bits at epsilon 1")


def grid_ridge() -> Cells:
    """benchmarks/moments/numbers.md: what the grid costs a regression."""
    return _by_grid("ridge's test MSE by grid_bits, over that on the finest grid", digits=4)


def grid_ridge_private() -> Cells:
    """benchmarks/moments/numbers.md: what the grid costs a regression under privacy."""
    return _by_grid("ridge's test MSE by grid_bits, over that on the finest grid, at epsilon 1", digits=4)


def _by_grid(title: str, *first: str, digits: int = 2) -> Cells:
    rows = results("moments.grid")[title]
    what = next(iter(rows[0]))
    steps = (*first, *(key for key in rows[0] if key.endswith("bits")))
    columns = (*steps, "standard error")
    names = {**NAMES, "mnist5k": "MNIST", "letter": "Letter", "agnews": "AG News"}
    lines = ([names.get(row[what], row[what]), *(_cell(row[key], digits) for key in columns)] for row in rows)
    return [[what, *steps, "one standard error"], *lines]


def _cell(value: float | str, digits: int) -> str:
    return value if isinstance(value, str) else f"{value:.{digits}f}"


def sums() -> Cells:
    """benchmarks/moments/numbers.md: exact sums as multiples of one matrix product."""
    rows = {row["task"]: row for row in results("moments.sums")["moments of 50,000 x 512, 100 classes"]}

    def times(task: str) -> str:
        return f"{rows[task]['x A.T @ A']:.2f}" if task in rows else "not done"

    def memory(task: str) -> str:
        return f"{rows[task]['peak beyond it MiB']:.0f} MiB"

    def line(letters: str, quantised: str) -> list[str]:
        task = f"measure {letters}"
        return [f"`{letters}`", quantised, times(task), memory(task)]

    peers = ("naive numpy NAB", "naive numpy NAS", "sklearn EmpiricalCovariance", "sklearn LedoitWolf")
    return [
        ["100 classes", "quantised before", "clip and grid included", "peak memory beyond the result"],
        *(line(letters, times(f"sums {letters}, quantised before")) for letters in ("NAB", "NAS")),
        line("Ghq, 5 folds", ""),
        *([name, times(name), "not done", memory(name)] for name in peers),
    ]


def names() -> Cells:
    """benchmarks/moments/numbers.md: what names in the plan are worth."""
    tables = results("moments.names")
    sets = {"banking77": "BANKING77", "digits": "digits"}
    accuracy = {name: _by(tables[f"names in the plan: {name}"], "way", "accuracy") for name in sets}
    ways = next(iter(accuracy.values()))
    return [["", *sets.values()], *([way, *(f"{accuracy[name][way]:.1f}" for name in sets)] for way in ways)]


def persons() -> Cells:
    """benchmarks/moments/numbers.md: a clip of the whole person beside k times the noise of a row."""
    sets = {"agnews": "AG News", "banking77": "BANKING77", "digits": "digits"}
    promises = {"one person, c = 5": "k times the noise (c = 5)", "one person, c = sqrt 5": "c = sqrt 5"}
    promises |= {"one person, c = 1": "c = 1", "one person, average": "average", "one row": "one row is promised"}
    lines = [["data, rows of a person", *promises.values(), "largest standard error"]]
    for name, shown in sets.items():
        rows = [row for row in results("dp.persons")[f"accuracy, %: {name}"] if row["epsilon"] == 1]
        for how in dict.fromkeys(row["rows of a person"] for row in rows):
            found = {row["promise"]: row for row in rows if row["rows of a person"] == how}
            scores = [f"{found[promise]['accuracy']:.1f}" for promise in promises]
            lines.append([f"{shown}, {how}", *scores, f"{max(row['standard error'] for row in found.values()):.1f}"])
    return lines


def epsilon_worth() -> Cells:
    """docs/epsilon.md: the best attacker at delta 1e-5, and the noise of one count."""
    head = ["epsilon", "of 100 units in the data, found at 1 false alarm in 100"]
    lines = [[*head, "right guesses of 100, where half are in the data", "AUC", "noise on a count: deviation, records"]]
    for epsilon in (0.3, 1.0, 3.0, 10.0):
        mu = dp.gaussian_mu(epsilon, 1e-5)
        found, auc, advantage = dp.operating_point(mu, 0.01)
        lines.append(
            [f"{epsilon:g}", f"{100 * found:.1f}", f"{50 * (1 + advantage):.0f}", f"{auc:.2f}", f"{1 / mu:.1f}"]
        )
    return lines


def graphs() -> Cells:
    """benchmarks/secagg/numbers.md: neighbours and failure bounds of sparse graphs."""
    rows = results("secagg.graphs")["10 % collude, 10 % drop"]
    bounds = ("connectivity", "privacy", "liveness", "lying_server")
    lines = [["n, 10 % collude, 10 % drop", "graph", "k", "t", *(name.replace("_", " ") for name in bounds)]]
    for row in rows:
        chances = (_power(row[f"log2 {bound}"]) for bound in bounds)
        lines.append([f"{row['clients']:,}", row["graph"], str(row["k"]), str(row["t"]), *chances])
    return lines


def sessions() -> Cells:
    """benchmarks/secagg/numbers.md: what a session costs."""
    tables = results("secagg.sessions")
    title = next(name for name in tables if name.startswith("sessions"))
    head = ["clients", "entries", "bits", "dropouts", "all", "server", "client", "upload / entries", "client receives"]
    return [head, *(_session(row) for row in tables[title])]


def _session(row: Row) -> list[str]:
    return [
        str(row["clients"]),
        f"{row['size']:.0e}".replace("+0", ""),
        row["bits"],
        row["dropouts"],
        f"{row['total_s']:.3g} s",
        f"{row['server_s']:.3g} s",
        f"{row['client_ms']:.3g} ms",
        f"{row['upload_ratio']:.3g}",
        f"{row['download_bytes'] / 1000:.0f} kB",
    ]


def _helper(row: Row) -> str:
    return "-" if row["helper_s"] is None else f"{row['helper_ms_per_report']:.2g} ms"


def _shown(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:.1f}" + ("" if row[f"{name} se"] is None else f" ± {row[f'{name} se']:.1f}")


def _set(name: str) -> str:
    return NAMES.get(name, "AG News")


_SPARSE: dict[str, Shown] = {
    "epsilon": lambda row: "no noise" if row["epsilon"] is None else f"{row['epsilon']:g}",
    "indicators": "{indicators:,}",
    **{name: _shown(name) for name in ("LDA", "ridge", "sparse groups")},
}


def heads_without_noise() -> Cells:
    """benchmarks/heads/numbers.md: test accuracy without noise."""
    tables = results("heads.compare")
    accuracy = {name: _by(tables.get(f"accuracy without noise, %: {name}", []), "model", "accuracy") for name in NAMES}
    beside = {
        "NaiveBayes": "naive Bayes",
        "LDA": "LDA",
        "LDA, total covariance": "",
        "QDA": "QDA (reg .1)",
        "LowRankQDA": "",
        "LowRankQDA, as published": "",
        "RDA": "",
        "FisherMix": "",
        "ProtoHyper": "",
        "RidgeClassifier": "ridge",
    }
    lines = [["model, and scikit-learn's on the raw records", *NAMES.values()]]
    for ours, theirs in beside.items():
        cells = [_percent(accuracy[name].get(f"privstats {ours}")) for name in NAMES]
        if theirs:
            peers = [_percent(accuracy[name].get(f"scikit-learn {theirs}")) for name in NAMES]
            cells = [f"{cell} / {peer}" for cell, peer in zip(cells, peers, strict=True)]
        lines.append([f"`{ours}` / {theirs}" if theirs else f"`{ours}`", *cells])
    random = _by(tables.get("ridge on 4096 public ReLU features and the raw ones, %", []), "data", "accuracy")
    lines.append(
        [
            "`RidgeClassifier`, 4096 random ReLU features and the raw ones, GCV",
            *(_percent(random[name]) if name in random else "" for name in NAMES),
        ]
    )
    logistic = "scikit-learn logistic regression"
    last = (_percent(accuracy[name].get(logistic)) for name in NAMES)
    return [*lines, ["logistic regression on the raw records", *last]]


def heads_under_privacy() -> Cells:
    """benchmarks/heads/numbers.md: test accuracy against epsilon."""
    tables = results("heads.compare")
    epsilons = ("0.1", "0.3", "1", "3", "8")
    lines = [["data", "model", *(epsilon.lstrip("0") for epsilon in epsilons)]]
    for name, shown in NAMES.items():
        own = tables.get(f"accuracy under differential privacy, %: {name}", [])
        rows = [*own, *refinement_tables.peers_rows(name)] or [{"model": "not measured"}]
        for place, row in enumerate(rows):
            model = row["model"].removeprefix("privstats ")
            cells = (_with_error(row.get(f"eps {e}"), row.get(f"se {e}")) for e in epsilons)
            lines.append([shown if not place else "", model, *cells])
    return lines


def deliberate_bugs() -> Cells:
    """benchmarks/mutation_numbers.md: who sees which deliberate bug."""
    rows = next(rows for title, rows in results("mutation").items() if title != "machine")
    lines = [
        ["bug", "unit test that fails", "audits that object", "their strongest evidence", "attacks beyond the ceiling"]
    ]
    measured = {row["bug"]: row for row in rows if row["bug"] in MUTANTS}
    for bug in MUTANTS:
        row = measured.get(bug, {"unit tests": "", "audits": "", "evidence": "not measured yet", "attacks": ""})
        tests = ", ".join(f"`{test}`" for test in row["unit tests"].split(", ") if test)
        lines.append([bug, tests, row["audits"], row["evidence"], row["attacks"]])
    rows = list(measured.values())
    count = {who: f"{sum(bool(row[who]) for row in rows)} seen" for who in ("unit tests", "audits", "attacks")}
    return [*lines, [f"{len(rows)} bugs measured", count["unit tests"], count["audits"], "", count["attacks"]]]


_OURS = ("with public records", "LDA, centred", "refined, with public records")


def _informed(row: Row, epsilon: str) -> str:
    """Accuracy; bold where public records, or a mean first, cost more than the standard error of what they gain."""
    cell = _with_error(row[f"eps {epsilon}"], row[f"se {epsilon}"])
    lost = row["model"] in _OURS and row[f"gain {epsilon}"] + row[f"gain se {epsilon}"] < 0
    return f"**{cell}**" if lost else cell


def _with_public(rest: str) -> str:
    """Data set and how many public records a class has."""
    data, _, count = rest.partition(", ")
    return f"{refinement_tables.DATA[data].partition(', ')[0]}, {count}"


_SCALE: dict[str, Shown] = {
    "clients": "{clients:,}",
    "entries": "{size run:,}",
    "k": "{k}",
    "t": "{t}",
    "client": "{client ms:.3g} ms",
    "server": "{server s:.3g} s",
    "client sends": "{sent KiB:,} KiB",
    "client receives": "{received KiB:,} KiB",
    "server state per client": "{server state KiB per client:,} KiB",
    "client at 1e6": "{client ms at 1e+06:.3g} ms",
    "server at 1e6": "{server s at 1e+06:.3g} s",
}
_MASKS: dict[str, Shown] = {
    "lane": "{lane}",
    "one mask of one entry": "{ours_ns:.2f} ns",
    "floor": "{floor_ns:.2f} ns",
    "times the floor": "{ratio:.2f}",
}
_LANES: dict[str, Shown] = {
    "masks": "{masks}",
    "one entry": "{ns:.2f} ns",
    "times as fast as today's": "{today / it:.2f}",
}
_AGREEMENT: dict[str, Shown] = {
    "clients": "{clients:,}",
    "client sends besides its vector": lambda row: f"{row['sends_bytes'] / 1000:.1f} kB",
    "client receives": lambda row: f"{row['receives_bytes'] / 1000:.1f} kB",
    "client": "{client_ms:.3g} ms",
    "server": "{server_s:.3g} s",
}
_FOLDERS: dict[str, Shown] = {"seconds": "{s:.2f}"}
_PUBLIC: dict[str, Shown] = {
    "model": "{model}",
    **{epsilon.lstrip("0"): partial(_informed, epsilon=epsilon) for epsilon in ("0.1", "0.3", "1", "3", "8")},
}
_REFINED = {heading: _PUBLIC[heading] for heading in ("model", ".1", ".3", "1")}
_LOST: dict[str, Shown] = {
    "head": "{head}",
    "draws": "{draws}",
    "that lost a class": "{lost}",
    "before": "{lost before}",
    "balanced accuracy": "{balanced accuracy:.1f}",
    "worst draw": "{worst draw:.1f}",
    "change": lambda row: "" if row["head"] == "LDA" else f"{row['change']:+.2f} ± {row['change se']:.2f}",
}
_UPLOADS: dict[str, Shown] = {
    "100 clients": "{protocol}",
    "entries": "{size:,}",
    "bits": "{bits}",
    "floor of a mask": "{floor_ms:.2g} ms",
    "client": "{client_ms:.3g} ms",
    "leader, per report": "{server_ms_per_report:.2g} ms",
    "helper, per report": _helper,
    "all": "{all_s:.2g} s",
    "upload": "ring + {beyond_ring_bytes:,} B",
}
_MANY_UPLOADS: dict[str, Shown] = {
    "clients": "{clients:,}",
    "entries": "{size:,}",
    "bits": "{bits}",
    "floor of a mask": "{floor_ms:.2g} ms",
    "client": "{client_ms:.3g} ms",
    "leader": "{server_s:.2g} s",
    "helper": "{helper_s:.2g} s",
    "a report": "{upload_bytes:,} B",
}

TABLES: Tables = {
    **by_name(
        grid,
        grid_private,
        grid_ridge,
        grid_ridge_private,
        sums,
        names,
        persons,
        epsilon_worth,
        graphs,
        sessions,
        heads_without_noise,
        heads_under_privacy,
    ),
    **by_name(deliberate_bugs),
    **core_tables.TABLES,
    **engine_tables.TABLES,
    "sparse_groups": Table("heads.sparse_groups", "accuracy in % of heads from sums: ", _SPARSE, ("data", _set)),
    "heads_public": Table("heads.public", "accuracy, %: ", _PUBLIC, ("data, public records", _with_public)),
    "refinement_public": Table("refinement.public", "accuracy, %: ", _REFINED, ("data, public records", _with_public)),
    "heads_centred": Table(
        "heads.centred", "accuracy, %: ", _PUBLIC, ("data", lambda name: refinement_tables.DATA[name])
    ),
    "heads_lost": Table("heads.lost", "lost classes: ", _LOST, ("data, epsilon", str)),
    "scale": Table("secagg.scale", "sparse graph, 10 % colluders, 10 % dropouts after sharing", _SCALE),
    "masks": Table("secagg.sessions", "masking: nanoseconds", _MASKS),
    "agreement": Table("secagg.agreement", "one interactive session", _AGREEMENT),
    "agreement_folders": Table("secagg.agreement", "five parties", _FOLDERS),
    "lanes": Table("secagg.lanes", "one mask of one entry", _LANES),
    "uploads": Table("secagg.upload", "one upload beside the interactive protocol", _UPLOADS),
    "uploads_of_many": Table("secagg.upload", "many clients, one helper, each report streamed", _MANY_UPLOADS),
    **attack_tables.TABLES,
    **alignment_tables.TABLES,
    **stream_tables.TABLES,
    **synthetic_tables.TABLES,
    **imputation_tables.TABLES,
    **site_level_tables.TABLES,
    **inference_tables.TABLES,
    **kind_tables.TABLES,
    **refinement_tables.TABLES,
    **regression_tables.TABLES,
    **peer_tables.TABLES,
    **proof_tables.TABLES,
    **public_table_tables.TABLES,
    **setting_tables.TABLES,
    **size_tables.TABLES,
    **speed_tables.TABLES,
    **raw_table_tables.TABLES,
    **rival_tables.TABLES,
    **row_tables.TABLES,
    **paper_tables.TABLES,
}
"""By the name in a page's marker."""


def in_page(page: str) -> Iterable[str]:
    """Names of the tables that stand in a page."""
    return [match[1] for match in (found.groups() for found in _MARKED.finditer(page))]


def rewritten(page: str) -> str:
    """The page with every marked table as the results have it, and every marked sentence as it follows."""
    return sentences.rewritten(_MARKED.sub(lambda found: found[1] + _markdown(TABLES[found[2]]()), page))


def _markdown(cells: Cells) -> str:
    head, *rows = cells
    lines = ("| " + " | ".join(line) + " |\n" for line in (head, ["---"] * len(head), *rows))
    return "".join(lines).replace("|  |", "| |")


def _by(rows: Sequence[Row], key: str, value: str) -> dict[str, Any]:
    return {row[key]: row[value] for row in rows}


def _percent(value: float | str | None) -> str:
    if value is None:
        return "not measured"
    return "fails" if isinstance(value, str) else f"{value:.1f}"


def _with_error(value: float | None, error: float | None) -> str:
    return _percent(value) + ("" if error is None else f" ± {error:.1f}")


def _power(log2: float | None) -> str:
    return "0" if log2 is None else f"2^{math.ceil(10 * log2) / 10:.1f}"


def main() -> int:
    """Compare or write; 1 where a page differs and is not to be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    stale = 0
    for path in PAGES:
        page = path.read_text("utf-8")
        fresh = rewritten(page)
        if fresh != page:
            print(f"{path.relative_to(DOCS.parent)}: " + ("written" if options.write else "differs from the results"))
            stale += not options.write
            if options.write:
                path.write_text(fresh, "utf-8")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
