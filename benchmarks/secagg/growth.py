"""From sessions that were run to sessions that were not: what further entries and further neighbours cost.

Arithmetic on results, no machine. A session that was not run is the largest run of as many clients, and for each
further entry one mask per neighbour (measured apart, by ``secagg.scale``) and what else an entry costs a client or a
report: what is left between two runs of other cohorts, one pair up to a million entries and one beyond, where vectors
no longer fit into caches. Thousands of clients were run over the sparse graph; over the robust one, which plans take,
all that a neighbour costs grows with their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.measuring import Row, Rows, results

__all__ = ["Cost", "checked", "every_size"]

PARTIES, ENTRIES = (10, 100, 1_000, 10_000), (10_000, 1_000_000, 10_000_000)
BEND = 1_000_000
_SCALE = "sparse graph, 10 % colluders, 10 % dropouts after sharing"
_GRAPHS = "10 % collude, 10 % drop"
_ENTRY_BYTES = 4


@dataclass(frozen=True)
class Cost:
    """What one session costs.

    Attributes:
        protocol, clients, entries: which.
        client, server, helper: processor seconds of one client, and of the server (the leader) and a helper for all.
        sent: bytes that a client sends.
        known: ``"measured"`` or ``"extrapolated"``.
    """

    protocol: str
    clients: int
    entries: int
    client: float
    server: float
    helper: float
    sent: float
    known: str = "measured"


@dataclass(frozen=True)
class Entry:
    """Processor seconds of one more entry beside the masks: of a client, and of server and helper for each report."""

    client: float
    server: float
    helper: float


@dataclass(frozen=True)
class Rule:
    """What further entries cost under one protocol.

    Attributes:
        mask: processor seconds of one mask of one entry.
        below, above: an entry up to :data:`BEND`, and one beyond it.
        fitted: the runs that these follow from.
    """

    mask: float
    below: Entry
    above: Entry
    fitted: frozenset[Cost]

    def further(self, base: Cost, entries: int) -> Cost:
        """The session of ``base`` with more entries."""
        low = min(entries, BEND) - min(base.entries, BEND)
        high = max(entries, BEND) - max(base.entries, BEND)
        more, masks = entries - base.entries, _masks(base)

        def added(name: str) -> float:
            return low * float(getattr(self.below, name)) + high * float(getattr(self.above, name))

        return replace(
            base,
            entries=entries,
            client=base.client + added("client") + more * masks[0] * self.mask,
            server=base.server + added("server") * base.clients + more * masks[1] * self.mask,
            helper=base.helper + added("helper") * base.clients,
            sent=base.sent + _ENTRY_BYTES * more,
            known="extrapolated",
        )


def every_size(rows: Rows, protocol: str) -> list[Cost]:
    """All numbers of parties and entries: what was measured, and for the rest the largest smaller run and the rule."""
    runs = _runs(rows, protocol)
    rule, known = _fitted(runs), [*runs, *(_thousands() if protocol == "interactive" else ())]
    costs = []
    for clients in PARTIES:
        for entries in ENTRIES:
            smaller = [cost for cost in known if cost.clients == clients and cost.entries <= entries]
            base = max(smaller, key=lambda cost: cost.entries)
            costs.append(base if base.entries == entries else rule.further(base, entries))
    return costs


def checked(rows: Rows, protocol: str) -> Rows:
    """Every run that was made and could have been extrapolated from a smaller one, with the errors of that."""
    runs = _runs(rows, protocol)
    rule, found = _fitted(runs), []
    for base, run in _pairs(runs):
        if not {base, run} <= rule.fitted:
            guess = rule.further(base, run.entries)
            errors = {name: getattr(guess, name) / getattr(run, name) - 1 for name in ("client", "server", "sent")}
            sizes = {"clients": run.clients, "from entries": base.entries, "to entries": run.entries}
            found.append({"protocol": protocol, **sizes, **errors})
    return found


def _runs(rows: Rows, protocol: str) -> list[Cost]:
    names = ("protocol", "clients", "entries", "client", "server", "helper", "sent")
    return [Cost(*(row[name] for name in names)) for row in rows if row["protocol"] == protocol]


def _pairs(runs: Sequence[Cost]) -> list[tuple[Cost, Cost]]:
    return [(a, b) for a in runs for b in runs if a.clients == b.clients and a.entries < b.entries]


def _fitted(runs: Sequence[Cost]) -> Rule:
    """The rule from the pairs of neighbouring sizes with most clients, up to the bend and beyond it."""
    mask = 1e-9 * float(results("secagg.scale")["cost per element, ns"][0]["mask"])
    low = [(a, b) for a, b in _pairs(runs) if b.entries <= BEND]
    high = [(a, b) for a, b in _pairs(runs) if a.entries >= BEND]
    below, above = (max(pairs, key=lambda pair: pair[0].clients) for pairs in (low, high))
    return Rule(mask, _entry(*below, mask), _entry(*above, mask), frozenset((*below, *above)))


def _entry(a: Cost, b: Cost, mask: float) -> Entry:
    """What is left of the difference of two runs when their masks are taken away, for each entry and report."""
    more, (client, server) = b.entries - a.entries, _masks(a)
    return Entry(
        max(0.0, (b.client - a.client) / more - client * mask),
        max(0.0, (b.server - a.server) / more - server * mask) / a.clients,
        max(0.0, (b.helper - a.helper) / more) / a.clients,
    )


def _masks(cost: Cost) -> tuple[int, int]:
    """How many masks a client adds, and the server takes away: its own and one per neighbour; survivors', lost pairs'.

    The streams of the one upload are as many in every cohort, so they are in the cost of an entry.
    """
    if cost.protocol != "interactive":
        return 0, 0
    neighbours, gone = _robust().get(cost.clients, cost.clients - 1), cost.clients // 10
    here = cost.clients - gone
    return neighbours + 1, here + gone * neighbours * here // cost.clients


def _robust() -> Mapping[int, int]:
    """Neighbours of the robust graph, by the number of clients that it is taken for."""
    rows = results("secagg.graphs")[_GRAPHS]
    return {row["clients"]: row["k"] for row in rows if row["graph"] == "robust" and row["clients"] > 256}


def _thousands() -> list[Cost]:
    """The sessions of thousands of clients that were run over the sparse graph, as over the robust one."""
    return [_over_robust(row, _robust()[row["clients"]] / row["k"]) for row in results("secagg.scale")[_SCALE]]


def _over_robust(row: Row, more: float) -> Cost:
    vector = _ENTRY_BYTES * row["size run"]
    sent = vector + more * (1024 * row["sent KiB"] - vector)
    times = (more * row["client ms"] / 1e3, more * row["server s"], 0.0)
    return Cost("interactive", row["clients"], row["size run"], *times, sent, "extrapolated")
