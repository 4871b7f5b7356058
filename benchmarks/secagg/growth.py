"""From sessions that were run to sessions that were not: what further entries and further neighbours cost.

Arithmetic on results, no machine. A session that was not run is the largest run of as many clients, and for each
further entry one mask per neighbour (measured apart, in the same run) and what else an entry costs a client or a
report: what is left between two runs of other cohorts, one pair up to a million entries and one beyond, where vectors
no longer fit into caches. Of a cohort that was not run at all, it is the largest cohort's run of the interactive
protocol: all of a client's cost grows with its neighbours, and all of the server's with clients times neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.measuring import Rows, results

__all__ = ["Cost", "checked", "every_size"]

PARTIES, ENTRIES = (10, 100, 1_000, 10_000), (10_000, 1_000_000, 10_000_000)
BEND = 1_000_000
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


def every_size(rows: Rows, protocol: str, mask: float) -> list[Cost]:
    """All numbers of parties and entries: what was measured, and for the rest the largest smaller run and the rule.

    ``mask`` is what one mask of one entry takes, in processor seconds.
    """
    runs = _runs(rows, protocol)
    rule, costs = _fitted(runs, mask), []
    for clients in PARTIES:
        here = [cost for cost in runs if cost.clients == clients] or [_wider(max(runs, key=_parties), clients)]
        for entries in ENTRIES:
            smaller = [cost for cost in here if cost.entries <= entries]
            base = max(smaller, key=lambda cost: cost.entries)
            costs.append(base if base.entries == entries else rule.further(base, entries))
    return costs


def checked(rows: Rows, protocol: str, mask: float) -> Rows:
    """Every run that was made and could have been extrapolated from a smaller one, with the errors of that."""
    runs = _runs(rows, protocol)
    rule, found = _fitted(runs, mask), []
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


def _fitted(runs: Sequence[Cost], mask: float) -> Rule:
    """The rule from the pairs of neighbouring sizes with most clients, up to the bend and beyond it."""
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


def _parties(cost: Cost) -> int:
    return cost.clients


def _wider(run: Cost, clients: int) -> Cost:
    """The session of ``run`` among more clients, over the robust graph as it is."""
    more = _robust()[clients] / _robust()[run.clients]
    vector = _ENTRY_BYTES * run.entries
    return replace(
        run,
        clients=clients,
        client=more * run.client,
        server=more * run.server * clients / run.clients,
        sent=vector + more * (run.sent - vector),
        known="extrapolated",
    )
