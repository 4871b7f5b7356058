"""Collect and print facts for a party before it takes part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from privstats.cli.parts.terminal import escape, new_table, terminal
from privstats.errors import LedgerError
from privstats.files.text import json_text
from privstats.printable import at_most, delta_text, printable

if TYPE_CHECKING:
    from privstats.dp.ledger.accounts import Account
    from privstats.engines.network.folder import Folder
    from privstats.engines.network.measuring import MeasuredRecords
    from privstats.engines.network.party import Party


def facts_of(party: Party, records: MeasuredRecords | None) -> dict[str, Any]:
    """Return the facts for a party; for a helper, or without records, only the run's."""
    from privstats.course.promise import total_of
    from privstats.engines.network.key_agreement import key_agreement
    from privstats.files.outside import state_folder

    course, kind, session = party.folder.course, party.folder.kind, party.first
    roster, plan, place = party.folder.roster, session.folder.plan, session.role.place
    client = place < len(roster)
    facts: dict[str, Any] = {
        "place": roster.called(place) if client else f"helper {place - len(roster) + 1}",
        **({} if kind.single else {"course": course.digest, "sessions": course.most}),
        "plan": plan.digest,
        "roster": roster.digest.hex(),
        "fingerprint": roster.fingerprint,
        "counters": str(state_folder()),
        "tls_key_agreement": str(key_agreement()),
        "upload_bytes": total_of(course).upload_bytes if client else 0,
    }
    if client and kind.changing is not None:
        own = kind.changing.facts(party.folder)
        return {**facts, **own, **_ledger(party.folder, own["account"])}
    if records is None:
        return facts
    return facts | record_facts(records) | time_facts(records) | _spending(party, records.dataset)


def time_facts(records: MeasuredRecords) -> dict[str, Any]:
    """Return a question about a hazard course's times for the data holder, if any."""
    from privstats.engines.network.measuring import times_of
    from privstats.workflows.look import times_remark

    times: Any = times_of(records.folder)
    course: Any = records.folder.above.course
    remark = "" if times is None else times_remark(course.plan.schema, times)
    return {"times": remark} if remark else {}


def record_facts(records: MeasuredRecords) -> dict[str, Any]:
    """Return the number of records summed, and remarks about clip and edges."""
    from privstats.engines.stored_moments import clip_report_of
    from privstats.moments import remarks_on

    report = clip_report_of(records.moments)
    facts: dict[str, Any] = {"records": records.moments.records}
    if getattr(records.moments, "persons", None) is not None:
        facts |= _person_facts(records.moments)
    if report is not None:
        facts["clipped"] = f"{report.fraction_clipped:.2%}"
        facts["targets_clipped"] = f"{report.fraction_targets_clipped:.2%}"
    outside = getattr(records.moments, "edge_report", None)
    if outside is not None and outside.beyond:
        facts["beyond_edges"] = str(outside)
    if report is not None or outside is not None:
        facts["remarks"] = list(remarks_on(records.moments))
    return facts


def _person_facts(moments: Any) -> dict[str, Any]:
    if moments.clip.averaged:
        return {"persons": f"{moments.persons}, each counted by the average of the rows"}
    return {"persons": f"{moments.persons}; {moments.shrunk} are clipped to the weight of {moments.clip.records:g}"}


def _spending(party: Party, dataset: str) -> dict[str, Any]:
    from privstats.course.promise import total_of

    spends = total_of(party.folder.course).claim
    return {"spends": spends, "account": dataset, **_ledger(party.folder, dataset)}


def _ledger(folder: Folder, dataset: str) -> dict[str, Any]:
    facts = {"ledger": _spent(folder, dataset)}
    refused = refusal(folder, dataset)
    return {**facts, "refused": refused} if refused else facts


def refusal(folder: Folder, dataset: str) -> str:
    """Return why the ledger would refuse to charge this run, or nothing; nothing is spent."""
    from privstats.course.spending import require_room

    try:
        require_room(folder.course, folder.ledger, dataset, folder.roster.run)
    except LedgerError as error:
        return str(error)
    return ""


def _spent(folder: Folder, dataset: str) -> str:
    account = next((each for each in folder.ledger.accounts() if each.dataset == dataset), None)
    return "nothing was released yet" if account is None else standing(account)


def standing(account: Account) -> str:
    """Return the spent and the remaining budget, in a line."""
    from privstats.dp.ledger.accounts import epsilon_of

    cap, delta = account.cap, account.quoted_delta
    held = "; and ".join(account.conditions)
    if cap is None:
        return _exact(account) + (f"; masks hide each party's sums while {held}" if held else "")
    most = cap.epsilon if cap.delta == delta else epsilon_of(account.mu_cap, delta)
    spent = f"spent epsilon {at_most(account.spent)} of {at_most(most)} at delta {delta_text(account.total_delta)}"
    masking = f" ({at_most(account.masking_failure, '.2g')} of it for the masking)" if account.masking_failure else ""
    condition = f", while {held}" if held else ""
    return spent + masking + condition + ("; MORE THAN THE CAP ADMITS" if account.exceeded else "")


def _exact(account: Account) -> str:
    if not account.counted:
        return "nothing was released, and no session is running"
    if len(account.waiting) == len(account.counted):
        return "nothing was released; a session over exact sums began, and may still send them until it is withdrawn"
    return "exact sums were released: no cap can hold for these data"


def show(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the facts as JSON, or as a table without empty facts."""
    if as_json:
        typer.echo(json_text(facts))
        return
    table = new_table(header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value not in ("", [], {}):
            table.add_row(name.replace("_", " "), escape(_text(value)))
    terminal().print(table)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    if isinstance(value, list):
        return "\n".join(printable(_line(each) if isinstance(each, Mapping) else each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _line(entry: Mapping[str, Any]) -> str:
    if "heard" in entry:
        due = ", and must answer" if entry["must_answer"] else ""
        return f"{entry['who']}: offer {entry['offer']}, heard {entry['heard']}{due}"
    if "who" in entry:
        return f"{entry['who']} {entry['why']}, since {entry['since']}"
    missing = f"; missing: {', '.join(entry['missing'])}" if entry["missing"] else ""
    return (
        f"round {entry['round']}, {entry['step']}: {entry['answered']} answered in {entry['seconds']} s, "
        f"{entry['bytes_received']:,} bytes up, {entry['bytes_sent']:,} down{missing}"
    )
