"""State of a leader's run: ``status.json``, the operator's facts, and Prometheus text.

It holds no sender: only the journal records who has reported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from privstats.contrib.http.leader import Leader
from privstats.contrib.http.owner import Owner
from privstats.contrib.http.run import LeaderRun
from privstats.engines.carriers import (
    ConnectionStatus,
    Exposition,
    Supervision,
    key_agreement,
    read_status,
    supervision,
)

_IDLE = ("offer", "over")


class HelperStanding(msgspec.Struct, frozen=True):
    """One helper: its offer, its last signed reply (Unix, or 0), and whether it must answer."""

    place: int
    offered: bool
    heard: float
    due: bool


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its leader's process sees it; times are Unix seconds.

    Attributes:
        updated, began: time of this state, and of the process's start.
        step, since: ``offer``, the machine's steps, or ``over``, and its start.
        reports, clients, least: stored reports, all clients, and the plan's minimum.
        closes, until: when reports close, and when the box keys end.
        answers, refused: requests by status, and refusals by code.
        received, sent, in_flight: bytes of bodies.
        groups, grouped, seconds: written groups, their reports, and their seconds.
        unsummed: settled parts that other machines still sum.
        trouble: why the sum is not released; else empty.
        ended: a sentence; empty before.
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
    """Return the state; call it in the owner's thread."""
    return Standing(
        process=os.getpid(),
        updated=now,
        began=began,
        connections=connections,
        refused=dict(sorted((leader.seen.refused + run.refusals).items())),
        **_of_run(run, leader.helpers.heard),
        **_of_carrier(leader, owner),
    )


def _of_run(run: LeaderRun, heard: Mapping[int, float]) -> dict[str, Any]:
    offering, plan, settings = set(run.offering), run.folder.plan, run.settings
    places = range(1, 1 + plan.helpers)
    return {
        "run": run.folder.roster.run.hex(),
        "step": run.step.name,
        "since": run.step.since,
        "reports": run.reports,
        "clients": plan.cohort.clients,
        "least": plan.cohort.min_survivors,
        "closes": settings.closes.timestamp(),
        "until": settings.until.timestamp(),
        "helpers": tuple(
            HelperStanding(place, place not in offering, heard.get(place, 0.0), run.waits_for(place))
            for place in places
        ),
        "trouble": run.trouble,
        "ended": run.sentence,
        "unsummed": 0 if run.journal is None else len(run.journal.unsummed),
    }


def _of_carrier(leader: Leader, owner: Owner) -> dict[str, Any]:
    seen, sizes = leader.seen, owner.sizes
    return {
        "answers": {str(status): count for status, count in sorted(seen.answers.items())},
        "received": seen.received,
        "sent": seen.sent,
        "in_flight": leader.intake.flight.held,
        "groups": sizes.groups,
        "grouped": sizes.reports,
        "seconds": sizes.seconds,
    }


def facts_of(home: Path, run: str, now: float | None = None) -> tuple[dict[str, Any], Supervision | None]:
    """Return facts for the operator, and the leading process, if any; ``now`` in Unix seconds."""
    now = time.time() if now is None else now
    held, standing = supervision(home, "served"), read_status(home, Standing)
    served = "no" if held is None else f"by process {held.process}, {held.address}"
    begun = {"role": "leader", "run": run, "served": served, "tls_key_agreement": str(key_agreement())}
    if standing is None or standing.run != run:
        return {**begun, "step": "not begun"}, held
    facts: dict[str, Any] = {
        **begun,
        "step": standing.step,
        "step_since": _time(standing.since),
        "reports": f"{standing.reports:,} of {standing.clients:,}, {standing.least:,} are needed",
        "closes": _time(standing.closes),
        "box_keys_end": _time(standing.until),
        "helpers": [_helper(each, now) for each in standing.helpers],
        "refused": dict(standing.refused),
        "bytes_received": standing.received,
        "updated": _time(standing.updated),
    }
    sentences = {"trouble": standing.trouble, "ended": standing.ended}
    waiting = {"parts_without_sum": standing.unsummed} if standing.unsummed else {}
    return facts | waiting | {name: text for name, text in sentences.items() if text}, held


def exposition(standing: Standing, held: Supervision | None, now: float) -> str:
    """Return the state in Prometheus' text format, version 0.0.4."""
    lines, status = Exposition(), standing
    lines.gauge("up", "Whether the leader serves.", held is not None)
    lines.certificate_days(held, now)
    lines.gauge("session_running", "Whether the run has begun and not ended.", status.step not in _IDLE)
    lines.gauge("step_open_seconds", "Seconds since the current step was opened.", now - status.since)
    lines.gauge("http_reports", "Senders whose report is on the disk.", status.reports)
    lines.gauge("http_parts_without_sum", "Settled parts whose sum is still to come.", status.unsummed)
    lines.family("received_bytes_total", "counter", "Bytes received.", {"": status.received})
    lines.family("sent_bytes_total", "counter", "Bytes sent.", {"": status.sent})
    lines.connections(status.connections)
    lines.family("http_requests_total", "counter", "Requests by status.", _labelled("code", status.answers))
    lines.family("http_refused_total", "counter", "Refusals by code.", _labelled("code", status.refused))
    lines.gauge("http_in_flight_bytes", "Bytes of bodies that are being received.", status.in_flight)
    text = "Reports of a group with one wait for the disk."
    lines.summary("http_group_size", text, status.grouped, status.groups)
    text = "Seconds of a group, its wait for the disk included."
    lines.summary("http_group_seconds", text, status.seconds, status.groups)
    silent = {str(each.place): now - (each.heard or status.began) for each in status.helpers}
    text = "Seconds since a helper last signed a reply to this process."
    lines.family("http_helper_silent_seconds", "gauge", text, _labelled("place", silent))
    due = {str(each.place): float(each.due) for each in status.helpers}
    lines.family("http_helper_due", "gauge", "Whether a helper has something to answer.", _labelled("place", due))
    return lines.text


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
