"""The tables of docs/how_big.md and benchmarks/size_numbers.md: what a session and a measurement cost as they grow.

Cells only; ``tables`` finds the pages that they stand in.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measuring import Row, Rows, results
from benchmarks.secagg.growth import Cost, checked, every_size
from benchmarks.table import Tables, by_name, titled
from privstats.secagg.protocols import PROTOCOLS

__all__ = ["TABLES"]

_LARGE = "extrapolated to 100,000,000 records"


def how_big_interactive() -> list[list[str]]:
    """Every size of the interactive protocol."""
    head = ["parties", "entries", "client", "server", "a client sends", "the server receives", "known"]
    return [head, *([*_size(cost), *_sent(cost)] for cost in every_size(_measured(), "interactive", _mask()))]


def how_big_split() -> list[list[str]]:
    """Every size of the one upload, with one helper."""
    head = ["parties", "entries", "client", "leader", "helper", "a client sends", "the leader receives", "known"]
    whole = {(cost.clients, cost.entries): cost for cost in _streamed()}
    costs = (whole.get((cost.clients, cost.entries), cost) for cost in every_size(_measured(), "split", _mask()))
    return [head, *([*_size(cost), _seconds(cost.helper), *_sent(cost)] for cost in costs)]


def how_big_rule() -> list[list[str]]:
    """How far the extrapolation is off where the run was made, too."""
    lines = [["protocol", "parties", "from entries", "to entries", "client", "server or leader", "bytes"]]
    for row in (row for protocol in PROTOCOLS for row in checked(_measured(), protocol, _mask())):
        errors = (f"{round(100 * row[name]) or 0:+d} %" for name in ("client", "server", "sent"))
        sizes = (row["clients"], row["from entries"], row["to entries"])
        lines.append([f"`{row['protocol']}`", *(f"{size:,}" for size in sizes), *errors])
    return lines


def peaks() -> list[list[str]]:
    """The most that each machine allocates at a time."""
    lines = [["protocol", "parties", "entries", "bits", "client", "server or leader", "helper"]]
    for name, benchmark in (("interactive", "secagg.sessions"), ("split", "secagg.upload")):
        tables = results(benchmark)
        title = next(title for title in tables if title.startswith("peak memory"))
        for row in tables[title]:
            server = row["server_peak" if name == "interactive" else "leader_peak"]
            helper = _bytes(row["helper_peak"]) if "helper_peak" in row else "-"
            size = f"{row['clients']:,}", f"{row['size']:,}", row["bits"]
            lines.append([f"`{name}`", *size, _bytes(row["client_peak"]), _bytes(server), helper])
    return lines


def many_records() -> list[list[str]]:
    """Records of one party, in one process and on a cluster."""
    tables = results("moments.dask")
    title = next(name for name in tables if name.startswith("NAB"))
    head = [
        "records x 64",
        "BLAS floor",
        "one process",
        "Dask, 2 workers",
        "Dask / floor",
        "parallel efficiency",
        "known",
    ]
    lines = [[*_records(row), "measured"] for row in tables[title]]
    (large,) = tables[_LARGE]
    (untouched,) = tables["the allocator as Dask sets it"]
    error = f"extrapolated, ± {100 * large['largest error at the largest size']:.0f} %"
    return [head, *lines, [*_records(large), error], [*_records(untouched), "measured, Dask's own allocator setting"]]


def engines() -> list[list[str]]:
    """Records of one party in parts: each engine beside one process."""
    head = [
        "records x 40",
        "engine",
        "processor seconds",
        "of these Java",
        "of one process's",
        "of two processes'",
        "wall time",
        "memory",
        "sums",
    ]
    lines = [head]
    for title, rows in results("moments.engines").items():
        if title.startswith("NAB"):
            records, source, *_ = title.split(", ")
            what = f"{records.split(' ')[2]}, {source}"
            lines += [
                [
                    what,
                    row["engine"],
                    f"{row['cpu s']:.3g} s",
                    f"{row['java cpu s']:.3g} s" if row["java cpu s"] else "",
                    f"{row['cpu / one process']:.2f}",
                    f"{row['cpu / processes at once']:.2f}",
                    f"{row['wall s']:.3g} s",
                    _bytes(row["peak MiB"] * 2**20),
                    "equal" if row["same integers"] else "none",
                ]
                for row in rows
            ]
    return lines


def engine_growth() -> list[list[str]]:
    """What more workers would take, simulated."""
    (rows,) = (rows for title, rows in results("moments.engines").items() if title.startswith("growth"))
    lines = [[str(row["workers"]), f"{row['simulated wall s']:.3g} s", f"{row['simulated speed']:.1f}"] for row in rows]
    return [["workers", "wall time, simulated", "speed, simulated"], *lines]


_BATCHES = "requests of a device, counted on the host"
_ROUNDS = "requests of a round, counted on the host"


def device_batches() -> list[list[str]]:
    """Sums over records on an accelerator: what a batch, a tile and the end request of it, before tiles and today."""
    head = ["batch on the device", "sums", "waits of a batch", "operations of a batch"]
    lines = [[*head, "waits, operations of a tile and the end", "copied to the host"]]
    for before, row in _before_and_today(_BATCHES):
        classes = f"{row['classes']} classes" if row["classes"] else "one target, 5 folds"
        size = f"{row['rows of a batch']:,} records, {row['features']} features"
        copied = _both(*(_bytes(each["bytes copied to the host"]) for each in (before, row)))
        lines.append([size, f"`{row['statistics']}`, {classes}", *_requests(before, row), copied])
    return lines


def device_rounds() -> list[list[str]]:
    """Rounds over records on an accelerator: what nine batches request of it, before tiles and today."""
    head = ["nine batches on the device", "round", "waits of a batch", "operations of a batch"]
    lines = [[*head, "waits, operations of a tile and the end", "bytes of the records", "copied to the host"]]
    for before, row in _before_and_today(_ROUNDS):
        size = f"{row['records of a batch']:,} records each, {row['features']} features"
        copied = _both(*(_bytes(each["bytes copied to the host"]) for each in (before, row)))
        lines.append([size, _round(row), *_requests(before, row), _bytes(row["bytes of the records"]), copied])
    return lines


def _before_and_today(title: str) -> Iterator[tuple[Row, Row]]:
    counted = results("moments.device")
    return zip(counted[f"before, {title}"], counted[title], strict=True)


def _requests(before: Row, row: Row) -> list[str]:
    each = [_both(f"{before[key]:g}", f"{row[key]:g}") for key in ("waits per batch", "launches per batch")]
    return [*each, f"{row['waits of a tile and the end']}, {row['launches of a tile and the end']}"]


def _both(before: str, today: str) -> str:
    return f"{before} -> {today}"


def device_maps() -> list[list[str]]:
    """Rounds with a map over records on an accelerator: a record's multiplications and bytes, with cached rows."""
    head = ["features", "round", "multiplications: two products", "first round", "later rounds"]
    lines = [[*head, "bytes: rows of the two products", "first round", "later rounds"]]
    for row in _rounds():
        two = row["multiplications of the two products"]
        if two is None:
            continue
        done = (f"{row[f'multiplications, {which} round']:,.0f}" for which in ("first", "later"))
        moved = (f"{row[f'bytes, {which} round']:,.0f}" for which in ("first", "later"))
        width = two // 2 // max(row["classes"] or 1, 1)
        lines.append([f"{row['features']}", _round(row), f"{two:,}", *done, f"{16 * width:,}", *moved])
    return lines


def _rounds() -> Rows:
    rows: Rows = results("moments.device")[_ROUNDS]
    return rows


def _round(row: Row) -> str:
    if row["classes"]:
        return f"softmax, {row['classes']:,} classes"
    return "ridge regression" if row["classes"] == 0 else "logistic regression"


def _measured() -> Rows:
    rows: Rows = results("secagg.how_big")["measured here"]
    return rows


def _streamed() -> list[Cost]:
    """The runs of many clients in ``benchmarks.secagg.upload``, of 32-bit entries."""
    _, rows = next(iter(titled("secagg.upload", "many clients, one helper")))
    return [
        Cost(
            "split",
            row["clients"],
            row["size"],
            row["client_ms"] / 1e3,
            row["server_s"],
            row["helper_s"],
            row["upload_bytes"],
        )
        for row in rows
        if row["bits"] == "32"
    ]


def _mask() -> float:
    return 1e-9 * float(results("secagg.how_big")["one mask of one entry, nanoseconds"][0]["ns"])


def _size(cost: Cost) -> list[str]:
    return [f"{cost.clients:,}", f"{cost.entries:,}", _seconds(cost.client), _seconds(cost.server)]


def _sent(cost: Cost) -> list[str]:
    return [_bytes(cost.sent), _bytes(cost.clients * cost.sent), cost.known]


def _records(row: Row) -> list[str]:
    times = (f"{row[name]:.2g} s" for name in ("A.T @ A s", "measure s", "dask s"))
    return [f"{row['records']:,}", *times, f"{row['dask / floor']:.1f}", f"{100 * row['parallel efficiency']:.0f} %"]


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e3 * seconds:.1f} ms"
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


TABLES: Tables = by_name(
    *(how_big_interactive, how_big_split, how_big_rule, peaks, many_records, engines, engine_growth),
    *(device_batches, device_rounds, device_maps),
)
"""By the name in the page's marker."""
