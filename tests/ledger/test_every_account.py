"""Questions to every type of account: one spend pays for one upload, whatever was put back to before it."""

import ast
import dataclasses
import importlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import MomentsDelta, RegistryCharge
from privstats.course import Single, spend
from privstats.errors import LedgerError
from privstats.secagg import Client
from privstats.session.accounting import Chargeable
from tests import made
from tests.contrib.streams.streams import registry, stream_of
from tests.session.test_session import IDENTITIES, SHARES, client, plan, roster, session
from tests.threads import join
from tests.without import present

RUN = b"may"
FIRST, SECOND = b"\1" * 32, b"\2" * 32
PACKAGE = Path(ps.__file__).parent


def classes_of(text: str) -> Iterator[tuple[str, set[str]]]:
    """The names of a file's classes, each with the names of its bases."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            yield node.name, {ast.unparse(base).rpartition(".")[2] for base in node.bases}


def below(kind: type[Chargeable]) -> set[type[Chargeable]]:
    return {kind}.union(*map(below, kind.__subclasses__()))


def kinds() -> list[type[Chargeable]]:
    """Every concrete type of account in the package, wherever it is defined."""
    texts = {file: file.read_text() for file in PACKAGE.rglob("*.py")}
    named = [
        (name, bases, file) for file, text in texts.items() if "class " in text for name, bases in classes_of(text)
    ]
    known, size = {"Chargeable"}, 0
    while len(known) > size:
        size = len(known)
        known |= {name for name, bases, _ in named if bases & known}
    for file in {file for name, _, file in named if name in known}:
        importlib.import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
    concrete = {kind for kind in below(Chargeable) if not kind.__abstractmethods__}  # type: ignore[attr-defined]
    return sorted((kind for kind in concrete if kind.__module__.startswith("privstats.")), key=lambda it: it.__name__)


def account_of(kind: type[Chargeable], folder: Path) -> tuple[Any, ps.Plan]:
    """An account of this type, built from its fields, and the plan that it pays for."""
    needed = {each.name for each in dataclasses.fields(kind) if each.default is dataclasses.MISSING}  # type: ignore[arg-type]
    if "registry" in needed:
        stream = stream_of(plan=plan("distributed"))
        book = registry(folder, stream)
        subject = stream.first
        own: dict[str, Any] = {"registry": book, "sends": (), "ledger": book.ledger, "entry": book.entry}
    else:
        subject = plan("distributed")
        ledger = made.ledger(folder / "party.db", epsilon=1.2)
        own = {"ledger": ledger, "dataset": "ward"}
        if "entry" in needed:
            own["entry"] = spend(Single(subject), ledger, "ward", RUN)
    values = {"place": 0, "plan": subject.digest, **own}
    assert needed <= values.keys(), f"state here what {kind.__name__} takes as {needed - values.keys()}"
    return kind(**{name: values[name] for name in needed}), subject


CHARGES = kinds()


@pytest.fixture(params=CHARGES, ids=lambda kind: kind.__name__)
def paid(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, ps.Plan]:
    """An account that has paid for a session, which has sent nothing yet."""
    account, subject = account_of(request.param, tmp_path)
    account.spend(subject, RUN)
    return account, subject


def cost(account: Any) -> float:
    (only,) = account.ledger.accounts()
    return float(only.mu)


def test_the_types_of_accounts_are_found_where_they_are_defined() -> None:
    known = {ps.session.Charge, ps.session.RoundCharge, ps.session.ReleaseCharge}
    assert known | {*present({"a stream's": RegistryCharge}).values()} <= set(CHARGES)


def test_an_upload_is_recorded_once_and_another_is_refused(paid: Any) -> None:
    account, subject = paid
    for _ in range(2):
        account.finish(subject, RUN, FIRST)  # again after a kill, with identical bytes
    written = account.ledger.head
    made.refused(LedgerError, "another|new run name", account.finish, subject, RUN, SECOND)
    assert account.ledger.head == written


def test_an_upload_without_a_digest_is_never_the_same(paid: Any) -> None:
    account, subject = paid
    with suppress(LedgerError):
        account.finish(subject, RUN, b"")
    made.refused(LedgerError, "another|new run name|is empty", account.finish, subject, RUN, b"")


def test_what_another_process_reads_refuses_the_second_upload_too(paid: Any) -> None:
    account, subject = paid
    account.finish(subject, RUN, FIRST)
    again = dataclasses.replace(account, ledger=ps.dp.Ledger.open(account.ledger.path))
    made.refused(LedgerError, "another|new run name", again.finish, subject, RUN, SECOND)
    again.finish(subject, RUN, FIRST)


def test_of_many_uploads_at_once_one_is_sent(paid: Any) -> None:
    account, subject = paid
    accepted: list[bytes] = []

    def send(place: int) -> None:
        try:
            account.finish(subject, RUN, bytes([place]) * 32)
        except LedgerError:
            return
        accepted.append(bytes([place]))

    started = [Thread(target=send, args=(place,)) for place in range(4)]
    for thread in started:
        thread.start()
    join(*started)
    assert len(accepted) == 1


@pytest.mark.parametrize("kind", CHARGES, ids=lambda kind: kind.__name__)
def test_an_upload_that_nothing_paid_for_is_refused(kind: type[Chargeable], tmp_path: Path) -> None:
    account, subject = account_of(kind, tmp_path)
    made.refused(LedgerError, "no mark|no such run|was withdrawn", account.finish, subject, RUN, FIRST)


def test_a_spend_pays_for_its_plan_alone(paid: Any) -> None:
    account, _ = paid
    other = plan("distributed", epsilon=0.9)
    made.refused(LedgerError, "another plan|no such run under this plan", account.finish, other, RUN, FIRST)


def test_a_withdrawal_refunds_no_upload_and_no_upload_follows_a_refund(paid: Any) -> None:
    account, subject = paid
    full = cost(account)
    account.withdraw(subject, RUN)
    if cost(account) < full:
        made.refused(LedgerError, "withdrawn", account.finish, subject, RUN, FIRST)
        return
    account.finish(subject, RUN, FIRST)
    account.withdraw(subject, RUN)
    assert cost(account) == full
    made.refused(LedgerError, "another", account.finish, subject, RUN, SECOND)


def test_noise_is_not_sampled_again_once_an_upload_was_sent(paid: Any) -> None:
    """A server repeats its release, and the ledger compares what it repeats: such an account may be asked again."""
    account, subject = paid
    account.finish(subject, RUN, FIRST)
    if isinstance(account, ps.session.ReleaseCharge):
        account.spend(subject, RUN)
        made.refused(LedgerError, "round 0 .*another", account.finish, subject, RUN, SECOND)
    else:
        made.refused(LedgerError, "begun|new run name", account.spend, subject, RUN)


def released_again(kind: type[Chargeable], folder: Path) -> Any:
    """A session, and what the same machines then yield: put back to before their uploads, with party 3 absent."""
    sealed, paid = [], []
    for index in range(4):
        (own := folder / str(index)).mkdir()
        account, subject = account_of(kind, own)
        paid.append(account)
        nothing = MomentsDelta.nothing(subject.schema)  # a stream's account is of changes
        mine = client(subject, nothing if hasattr(account, "registry") else SHARES[index], index=index, charge=account)
        sealed.append(mine.export(bytes(32)))

    def again() -> list[Any]:
        return [
            Client.resume(
                each,
                bytes(32),
                parameters=subject.masking,
                index=index,
                identity=IDENTITIES[index],
                roster=roster(),
                on_upload=ps.session.on_upload(subject, roster(), paid[index]),
            )
            for index, each in enumerate(sealed)
        ]

    assert session(subject, again()).survivors == (0, 1, 2, 3)
    second = session(subject, again(), {"advertise": {3}})
    assert np.isfinite([cost(account) for account in paid]).all()
    return second


@pytest.mark.parametrize("kind", CHARGES, ids=lambda kind: kind.__name__)
def test_machines_put_back_to_before_their_uploads_yield_one_sum(kind: type[Chargeable], tmp_path: Path) -> None:
    """With a course's mark both sums were released: their difference had .81 sigma of noise, and was one entry."""
    made.refused(LedgerError, "round 0 .*another|new run name|another vector", released_again, kind, tmp_path)


@pytest.mark.parametrize("kind", CHARGES, ids=lambda kind: kind.__name__)
def test_the_attack_finds_every_account_that_keeps_no_digest(
    kind: type[Chargeable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "finish", lambda *_: None)
    assert released_again(kind, tmp_path).survivors == (0, 1, 2)
