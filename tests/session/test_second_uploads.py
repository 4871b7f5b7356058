"""Two uploads where one was paid for: by a fork, by a resume past the ledger; and spends that bought nothing."""

import pytest

import privstats as ps
from privstats.secagg import Client
from privstats.session import Charge
from tests.session.test_session import IDENTITIES, MOMENTS, SERVER, charge, client, entries, plan, roster, session

__all__ = ["charge"]


def resumed_clients(subject, sealed, told=None):
    """A whole cohort whose client 0 comes from its export, past the ledger unless ``told``."""
    place = {"index": 0, "identity": IDENTITIES[0], "roster": roster()}
    first = Client.resume(sealed, bytes(32), parameters=subject.masking, **place, **(told or {}))
    return [first, *(client(subject, MOMENTS, index=index) for index in range(1, 4))]


def test_a_charged_client_that_is_resumed_without_its_ledger_uploads_nothing(charge):
    """Its run's name stayed free, so that a second upload with other noise cost nothing."""
    subject = plan("distributed")
    sealed = client(subject, MOMENTS, charge=charge).export(bytes(32))
    clients = resumed_clients(subject, sealed)
    with pytest.raises(ps.LedgerError, match="on_upload"):
        session(subject, clients)
    assert clients[0].answer == clients[0].upload == b""
    told = {"on_upload": ps.session.on_upload(subject, roster(), charge)}
    session(subject, resumed_clients(subject, sealed, told))
    assert entries(charge)[0].released is not None
    with pytest.raises(ps.LedgerError, match="new run name"):
        client(subject, MOMENTS, charge=charge)


@pytest.mark.parametrize("mistake", ["place", "identity", "roster"])
def test_a_client_that_cannot_be_made_costs_nothing(charge, mistake):
    """The spend was written first: the mistake cost what a release costs, and used the contribution up."""
    subject = plan("distributed")
    mine = ps.session.contribution(subject, MOMENTS)
    wrong = {"index": 0, "identity": IDENTITIES[0], "roster": roster()}
    wrong |= {
        "place": {"index": 1},
        "identity": {"identity": SERVER},
        "roster": {"roster": type(roster())(roster().publics[:3], server=SERVER.public, run=b"may")},
    }[mistake]
    with pytest.raises(ps.LocalProtocolError, match="roster"):
        ps.session.client(subject, mine, charge=charge, **wrong)
    assert entries(charge) == ()
    client(subject, mine, charge=charge)


def test_an_upload_that_the_ledger_could_not_hear_of_and_that_never_left_uses_no_name_up(charge, monkeypatch):
    """The server ended the session meanwhile; its word made the ledger note an upload that nobody ever sent."""
    subject = plan("distributed")
    machines = [client(subject, MOMENTS, charge=charge), *(client(subject, MOMENTS, index=k) for k in range(1, 4))]
    server = ps.session.server(subject, roster(), identity=SERVER)
    for _ in range(3):
        for index, message in server.outbox if server.waiting_for else server.start():
            server.receive(index, machines[index].receive(message)[0][1])
        outbox = server.end_step()
    with monkeypatch.context() as patch:
        patch.setattr("privstats.dp.Ledger.finish", lambda *_: (_ for _ in ()).throw(ps.LedgerError("locked")))
        with pytest.raises(ps.LedgerError, match="locked"):
            machines[0].receive(outbox.to(0))
    assert machines[0].receive(server.abandon().to(0)) == []
    assert machines[0].ended == "abandoned"
    assert entries(charge)[0].released is None
    client(subject, MOMENTS, charge=charge)


def test_a_number_is_not_taken_up_again_for_another_data_set(charge):
    """Old advertisements of the run were good again, so on a sparse graph a sum over too few could be had."""
    subject, run = plan("distributed"), 0
    other = Charge(charge.ledger, "ward 8")
    charge.ledger.set_cap("ward 8", unit="record", adjacency="add-remove", epsilon=1.2, delta=1e-5)
    both = [client(subject, MOMENTS, run, charge=charge), client(subject, MOMENTS, run, index=1, charge=other)]
    session(subject, [*both, *(client(subject, MOMENTS, run, index) for index in (2, 3))], run=run)
    charge.ledger.set_cap("ward 9", unit="record", adjacency="add-remove", epsilon=1.2, delta=1e-5)
    third = Charge(charge.ledger, "ward 9")
    with pytest.raises(ps.LedgerError, match="new run name"):
        client(subject, MOMENTS, run, charge=third)
    assert entries(third) == ()
    client(subject, MOMENTS, run + 1, charge=third)
