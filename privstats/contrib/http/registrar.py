"""Invite people, sign the roster, and write each party's folder, as a registrar separate from all other parties.

Codes are in one file, to be destroyed after the mailing; otherwise only public keys are stored.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from privstats import domains
from privstats.contrib.http.browsers import unanswered
from privstats.contrib.http.invitations import Invitation, draw_code, study_of
from privstats.contrib.http.settings import FILE, Limits, Settings
from privstats.engines.carriers import LARGE_ROSTER, PLAN, ROSTER
from privstats.errors import LocalProtocolError, PlanError, PrivstatsError
from privstats.extend.support import Entropy, progress_bar, read_bounded, write_new
from privstats.files.signing import verify
from privstats.plan import Devices, Plan
from privstats.secagg import Identity, Roster
from privstats.secagg.keys import draw, require_identity

LINKS = "links.txt"
"""One link a line, in the order of the roster: any reader of the file can answer for all."""

_SIGNATURE, _PAGE, _STUDY = "roster.signature", "page.txt", "study.json"
_LARGE = 10_000
_OWNER_ONLY = 0o700
_RUN_BYTES = 16
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_GROUP = 4


@dataclass(frozen=True)
class Run:
    """Files of one run.

    Attributes:
        folder: ``page`` and one folder per party, to which each owner adds ``identity.pem``.
        study: the page's digest, 64 hex digits, for people to compare.
        number: from 1 to the plan's ``most_runs``.
    """

    folder: Path
    roster: Roster
    study: str
    number: int


def write_study(
    folder: str | os.PathLike[str], plan: Plan, settings: Settings, page: str, *, browsers: bool = True
) -> None:
    """Write the registrar's folder: the plan, the settings, and the page's address.

    Args:
        plan: with a table ``[devices]``.
        page: the page's address, without ``#`` and ``?``, on another host than the leader's.
        browsers: False if only installed software answers.

    Raises:
        PlanError: the plan has no ``[devices]``, or no browser answers it.
        LocalProtocolError: the page is the leader's, or not among the origins.
    """
    _devices(plan)
    if browsers and (refusal := unanswered(plan)):
        raise PlanError(refusal)
    _check_page(page, settings)
    home = Path(folder)
    if home.exists():
        raise PrivstatsError(f"{home} exists; name another folder, or move that one away first")
    _make(home)
    for name, text in ((PLAN, plan.to_toml()), (FILE, settings.to_toml()), (_PAGE, f"{page}\n")):
        write_new(home / name, text.encode())


def write_invitations(
    folder: str | os.PathLike[str], identity: Identity, *, paper: bool = False, entropy: Entropy = os.urandom
) -> Run:
    """Generate one code per person, then write the links, the signed roster and each party's folder.

    Args:
        folder, identity: the registrar's.
        paper: write codes to be typed, not links: no mail filter reads paper.
        entropy: source of codes and the run's name.

    Raises:
        LocalProtocolError: another identity than the plan's, or codes exist already.

    Guarantee:
        Only the file :data:`LINKS`, which its owner alone may read, holds the codes.
    """
    home, plan = Path(folder), Plan.read(Path(folder) / PLAN)
    _check_registrar(plan, identity)
    if (home / LINKS).exists() and not _run_folder(home, 1).exists():
        raise LocalProtocolError(
            f"drawing codes in {home} was interrupted before anything could be handed out: remove {LINKS}, and invite"
        )
    if (home / LINKS).exists() or _run_folder(home, 1).exists():
        raise LocalProtocolError(
            f"codes were drawn in {home} before: two mailings give one person two codes, and the promise of one; "
            "`renew` writes the next run for the same codes, and another survey takes another folder"
        )
    people = list[Invitation]()
    with progress_bar("drawing codes", plan.cohort.clients) as advance:
        for place in range(plan.cohort.clients):
            people.append(Invitation(place, draw_code(entropy)))
            advance(1)
    publics = tuple(each.identity.public for each in people)
    roster = Roster(publics, server=bytes.fromhex(plan.panel[0]), run=draw(entropy, _RUN_BYTES))
    write_new(home / LINKS, _letter(people, _page_of(home), paper=paper).encode())
    return _write_run(home, plan, roster, identity, Settings.read(home), 1)


def renew(folder: str | os.PathLike[str], identity: Identity, settings: Settings | None = None) -> Run:
    """Write the next run for the same codes, after a failed run or for the next question.

    Each run counts, even a failed one: leader and a helper may have finished it alone.

    Args:
        folder, identity: the registrar's.
        settings: with the next run's days; the folder's if omitted.

    Raises:
        LocalProtocolError: another identity, no codes, or ``most_runs`` reached.
    """
    home, plan = Path(folder), Plan.read(Path(folder) / PLAN)
    _check_registrar(plan, identity)
    number, most = 1, _devices(plan).most_runs
    while _run_folder(home, number).exists():
        number += 1
    if number == 1:
        raise LocalProtocolError(f"no codes were drawn in {home}: invite people first")
    if number > most:
        raise LocalProtocolError(
            f"people were promised at most most_runs={most}, and {number - 1} were written: a further run breaks what "
            "their page said; make another plan, and invite other people"
        )
    settings = Settings.read(home) if settings is None else settings
    _check_page(_page_of(home), settings)
    first = _run_folder(home, 1)
    roster = Roster.load(first / (ROSTER if (first / ROSTER).exists() else LARGE_ROSTER)).renewed()
    return _write_run(home, plan, roster, identity, settings, number)


def check_devices(plan: Plan, roster: Roster, folder: str | os.PathLike[str]) -> None:
    """Refuse a party's roster that the registrar did not sign for this plan; ignored without ``[devices]``.

    Call it before a key is offered: a roster by the leader could surround one person with Sybils.

    Args:
        folder: with ``roster.signature``.
    """
    devices = plan.devices
    if devices is None:
        return
    text = read_bounded(Path(folder) / _SIGNATURE, LocalProtocolError, "the registrar")
    if not verify(bytes.fromhex(devices.registrar_key), _signature(text), _statement(plan, roster)):
        raise LocalProtocolError(
            f"this roster is not the one that the registrar, {devices.registrar!r}, signed for this plan: take "
            f"plan, roster and {_SIGNATURE} from the registrar itself, never from the leader"
        )
    panel = tuple(bytes.fromhex(key) for key in plan.panel)
    if len(roster) != plan.cohort.clients or roster.server != panel[0] or {*panel} & {*roster.publics}:
        raise LocalProtocolError("the registrar signed a roster that does not fit the plan: ask it for another one")


def _write_run(home: Path, plan: Plan, roster: Roster, identity: Identity, settings: Settings, number: int) -> Run:
    run = _run_folder(home, number)
    shared = {PLAN: plan.to_toml(), _SIGNATURE: identity.sign(_statement(plan, roster)).hex() + "\n"}
    study = study_of(roster.run, bytes.fromhex(plan.digest), roster.digest)
    pinned = {"leader": settings.address, "run": roster.run.hex(), "study": study}
    public = replace(settings, origins=(), limits=Limits())
    homes = {"leader": shared | {FILE: settings.to_toml()}, "page": {_STUDY: json.dumps(pinned) + "\n"}}
    homes |= {f"helper-{place}": shared | {FILE: public.to_toml()} for place in range(1, len(plan.panel))}
    _make(run)
    for name, files in homes.items():
        _make(run / name)
        for file, text in files.items():
            write_new(run / name / file, text.encode())
    for folder in (*(run / name for name in homes if name != "page"), run):
        roster.save(folder / (ROSTER if len(roster) <= _LARGE else LARGE_ROSTER))
    return Run(run, roster, study, number)


def _letter(people: list[Invitation], page: str, *, paper: bool) -> str:
    if not paper:
        return "".join(f"{each.link(page)}\n" for each in people)
    return "".join(f"{_typed(each.fragment)}\n" for each in people)


def _typed(fragment: str) -> str:
    version, index, letters, check = fragment.split(".")
    groups = (letters[place : place + _GROUP] for place in range(0, len(letters), _GROUP))
    return f"{version}.{index}.{'-'.join(groups)}.{check}"


def _devices(plan: Plan) -> Devices:
    if plan.devices is None:
        raise PlanError("this plan has no table [devices], which names who may send: add it, see docs/plan.md")
    return plan.devices


def _check_registrar(plan: Plan, identity: Identity) -> None:
    if require_identity(identity).public.hex() != _devices(plan).registrar_key:
        raise LocalProtocolError("this identity is not the registrar's of the plan, devices.registrar_key: give that")


def _check_page(page: str, settings: Settings) -> None:
    """Refuse a page on the leader's host: another port is the same machine."""
    Invitation(0, bytes(_RUN_BYTES)).link(page)  # raises where the page cannot carry a fragment
    theirs, ours = urlsplit(page), urlsplit(settings.address)
    host, other = ((each.hostname or "").rstrip(".") for each in (theirs, ours))
    if host == other and (host not in _LOOPBACK or theirs.port == ours.port):
        raise LocalProtocolError(
            "the page has the leader's host, and the server of the page reads every answer: serve it from a host of "
            "the party that the plan's devices.page names"
        )
    origin = f"{theirs.scheme}://{theirs.netloc}"
    if origin not in settings.origins and settings.origins != ("*",):
        raise LocalProtocolError(f"{FILE}: origins lacks the page's, {origin}: its browser could not ask; add it")


def _page_of(home: Path) -> str:
    return read_bounded(home / _PAGE, LocalProtocolError, "privstats http new").decode("ascii", "replace").strip()


def _statement(plan: Plan, roster: Roster) -> bytes:
    return domains.DEVICE_ROSTER + bytes.fromhex(plan.digest) + roster.digest


def _signature(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text[:1024].decode("ascii"))
    except ValueError:
        return b""


def _run_folder(home: Path, number: int) -> Path:
    return home / f"run-{number}"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=_OWNER_ONLY)
    except OSError as error:
        raise PrivstatsError(f"cannot make {folder}: {error.strerror}; name another folder") from None
