"""How a leader's run stands: ``status.json`` of its folder, the operator's facts, and Prometheus text.

It holds steps, places of helpers, codes, times and numbers: who has reported is in the journal alone. ``serve`` writes
it, the command line and the administration's address read it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from privstats.engines.http.leader import Leader
from privstats.engines.http.owner import Owner
from privstats.engines.http.run import LeaderRun
from privstats.engines.network.key_agreement import offered
from privstats.engines.network.metrics import connections_of, family, gauge
from privstats.engines.network.status_file import STATUS, ConnectionStatus, read_status
from privstats.engines.network.supervision import Supervision, supervision
from privstats.files.atomic import atomic_write

__all__ = ["HelperStanding", "Standing", "exposition", "facts_of", "keep", "standing_of"]

_IDLE = ("offer", "over")


class HelperStanding(msgspec.Struct, frozen=True):
    """One helper: whether its offer is here, when it last signed a reply (Unix, 0 for never), and if it must answer."""

    place: int
    offered: bool
    heard: float
    due: bool


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its leader's process sees it.

    Attributes:
        run: the roster's run name, in hex.
        process: of the leader.
        updated, began: the time of this state, and of the process (Unix).
        step, since: the current step and when it was opened (Unix): ``offer``, the machine's steps, ``over``.
        reports, clients, least: senders on the disk, of how many, and how many the plan needs.
        closes, until: when reports are no longer taken, and when the box keys end (Unix).
        helpers: one each.
        answers: requests by status.
        refused: refusals by code, the machine's of helpers too.
        received, sent: bytes of bodies.
        in_flight: bytes of bodies that are being received.
        groups, grouped, seconds: groups that were written, their reports, and the seconds that they took.
        unsummed: settled parts whose sum is still to come from other machines.
        connections: open ones at the public door, and what it turned away.
        trouble: why the sum is not released; empty otherwise.
        ended: the end of the run in a sentence; empty before.
    """

    run: str
    process: int
    updated: float
    began: float
    step: str
    since: float
    reports: int
    clients: int
    least: int
    closes: float
    until: float
    helpers: tuple[HelperStanding, ...]
    answers: dict[str, int]
    refused: dict[str, int]
    received: int
    sent: int
    in_flight: int
    groups: int
    grouped: int
    seconds: float
    trouble: str
    ended: str
    unsummed: int = 0
    connections: ConnectionStatus | None = None


def standing_of(
    run: LeaderRun, leader: Leader, owner: Owner, connections: ConnectionStatus, began: float, now: float
) -> Standing:
    """The standing; called in the owner's thread, as it asks the journal."""
    offering, cohort = set(run.offering), run.folder.plan.cohort
    places = range(1, 1 + run.folder.plan.helpers)
    helpers = (
        HelperStanding(place, place not in offering, leader.helpers.heard.get(place, 0.0), run.waits_for(place))
        for place in places
    )
    return Standing(
        run=run.folder.roster.run.hex(),
        process=os.getpid(),
        updated=now,
        began=began,
        step=run.step.name,
        since=run.step.since,
        reports=run.reports,
        clients=cohort.clients,
        least=cohort.min_survivors,
        closes=run.settings.closes.timestamp(),
        until=run.settings.until.timestamp(),
        helpers=tuple(helpers),
        answers={str(status): count for status, count in sorted(leader.seen.answers.items())},
        refused=dict(sorted((leader.seen.refused + run.refusals).items())),
        received=leader.seen.received,
        sent=leader.seen.sent,
        in_flight=leader.intake.flight.held,
        groups=owner.sizes.groups,
        grouped=owner.sizes.reports,
        seconds=owner.sizes.seconds,
        trouble=run.trouble,
        ended=run.sentence,
        unsummed=0 if run.journal is None else len(run.journal.unsummed),
        connections=connections,
    )


def keep(home: Path, standing: Standing) -> None:
    """Replace the folder's ``status.json``; raises ``PrivstatsError`` where it cannot be written."""
    atomic_write(home / STATUS, msgspec.json.format(msgspec.json.encode(standing)), durable=False)


def facts_of(home: Path, run: str, now: float | None = None) -> tuple[dict[str, Any], Supervision | None]:
    """Names and values for the operator, and the process that leads, if one does.

    Args:
        home: the leader's folder.
        run: the roster's run name, in hex.
        now: Unix seconds; the time when None.
    """
    now = time.time() if now is None else now
    held, found = supervision(home, "served"), read_status(home, Standing)
    served = "no" if held is None else f"by process {held.process}, {held.address}"
    begun = {"role": "leader", "run": run, "served": served, "tls_key_agreement": str(offered())}
    if found is None or found.run != run:
        return {**begun, "step": "not begun"}, held
    facts: dict[str, Any] = {
        **begun,
        "step": found.step,
        "step_since": _time(found.since),
        "reports": f"{found.reports:,} of {found.clients:,}, {found.least:,} are needed",
        "closes": _time(found.closes),
        "box_keys_end": _time(found.until),
        "helpers": [_helper(each, now) for each in found.helpers],
        "refused": dict(found.refused),
        "bytes_received": found.received,
        "updated": _time(found.updated),
    }
    told = {"trouble": found.trouble, "ended": found.ended}
    waiting = {"parts_without_sum": found.unsummed} if found.unsummed else {}
    return facts | waiting | {name: text for name, text in told.items() if text}, held


def exposition(standing: Standing, held: Supervision | None, now: float) -> str:
    """The standing in Prometheus' text format, version 0.0.4; labels hold steps, places and codes."""
    return "".join(f"{line}\n" for line in _lines(standing, held, now))


def _lines(status: Standing, held: Supervision | None, now: float) -> Iterator[str]:
    yield from gauge("up", "Whether the leader serves.", held is not None)
    if held is not None and held.certificate_ends:
        days = (held.certificate_ends - now) / 86_400
        yield from gauge("certificate_days_left", "Days until the TLS certificates of this process end.", days)
    yield from gauge("session_running", "Whether the run has begun and not ended.", status.step not in _IDLE)
    yield from gauge("step_open_seconds", "Seconds since the current step was opened.", now - status.since)
    yield from gauge("http_reports", "Senders whose report is on the disk.", status.reports)
    yield from gauge("http_parts_without_sum", "Settled parts whose sum is still to come.", status.unsummed)
    yield from family("received_bytes_total", "counter", "Bytes received.", {"": status.received})
    yield from family("sent_bytes_total", "counter", "Bytes sent.", {"": status.sent})
    yield from connections_of(status.connections)
    yield from family("http_requests_total", "counter", "Requests by status.", _labelled("code", status.answers))
    yield from family("http_refused_total", "counter", "Refusals by code.", _labelled("code", status.refused))
    yield from gauge("http_in_flight_bytes", "Bytes of bodies that are being received.", status.in_flight)
    sizes = {"_sum": status.grouped, "_count": status.groups}
    yield from _summary("http_group_size", "Reports of a group with one wait for the disk.", sizes)
    times = {"_sum": status.seconds, "_count": status.groups}
    yield from _summary("http_group_seconds", "Seconds of a group, its wait for the disk included.", times)
    silent = {str(each.place): now - (each.heard or status.began) for each in status.helpers}
    told = "Seconds since a helper last signed a reply to this process."
    yield from family("http_helper_silent_seconds", "gauge", told, _labelled("place", silent))
    due = {str(each.place): float(each.due) for each in status.helpers}
    yield from family("http_helper_due", "gauge", "Whether a helper has something to answer.", _labelled("place", due))


def _summary(name: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP privstats_{name} {text}"
    yield f"# TYPE privstats_{name} summary"
    for suffix, value in values.items():
        yield f"privstats_{name}{suffix} {value:.15g}"


def _labelled(label: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f'{label}="{name}"': value for name, value in values.items()}


def _helper(helper: HelperStanding, now: float) -> dict[str, Any]:
    heard = f"{now - helper.heard:,.0f} s ago" if helper.heard else "not since the leader started"
    return {
        "who": f"helper {helper.place}",
        "offer": "here" if helper.offered else "missing",
        "heard": heard,
        "must_answer": helper.due,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""
