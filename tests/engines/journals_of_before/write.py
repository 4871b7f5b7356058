"""Write journals of sessions that agree on keys by the hybrid, with the code and the tests of an earlier version.

``python write.py FOLDER`` runs in a checkout of that version. A journal is never written again:
``tests/engines/test_journals_of_before.py`` reads it. Messages and states of clients are stored too, because an
encapsulation is random.
"""

import sys
from pathlib import Path

from privstats.engines.journal import JournaledServer
from tests.engines.test_journal_uploads import KEY
from tests.secagg.interactive.cohorts import cohort_of
from tests.secagg.upload import cohorts
from tests.secagg.upload.cohorts import Uploads, uploads_of

HYBRID = {"key_agreement": "mlkem768-x25519"}


def write_masks(place: Path) -> None:
    """Two of four clients have uploaded; every client's state is stored."""
    cohort = cohort_of(4, 3, 0, **HYBRID)
    with JournaledServer.create(place / "server", KEY, cohort.server) as server:
        while server.step != "mask":
            for client, message in server.outbox:
                server.receive(client, cohort.clients[client].receive(message)[0][1])
            server.end_step()
        for client in (0, 1):
            server.receive(client, cohort.clients[client].receive(server.outbox.to(client))[0][1])
    for index, client in enumerate(cohort.clients):
        (place / f"client.{index}").write_bytes(client.export(KEY))


def leading(place: Path) -> tuple[Uploads, JournaledServer]:
    """A leader that has four of the five reports that are stored."""
    run = uploads_of()
    leader = JournaledServer.create(place / "server", KEY, run.leader)
    for sender in range(5):
        (place / f"report.{sender}").write_bytes(run.report(sender))
        if sender < 4:
            leader.receive(sender, run.report(sender))
    return run, leader


def write_reports(place: Path) -> None:
    """Two of six reports have not arrived."""
    leading(place)[1].close()


def write_checks(place: Path) -> None:
    """One of two helpers has answered the leader's one part, of five reports."""
    run, leader = leading(place)
    leader.receive(4, run.report(4))
    leader.end_step()
    peer, message = next(iter(leader.outbox))
    leader.receive(peer, run.helpers[peer - run.parameters.clients].receive(message)[0][1])
    leader.close()


def main(folder: Path) -> None:
    cohorts.SUITE.update(HYBRID)
    for name, write in (("masks", write_masks), ("reports", write_reports), ("checks", write_checks)):
        (folder / name).mkdir(parents=True)
        write(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
