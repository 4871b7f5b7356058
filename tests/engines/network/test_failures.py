"""The table of failures in the docs, row by row: each is provoked, and both ends read what it says, word for word."""

import errno
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.course import write
from privstats.engines.flower import launch
from privstats.engines.flower.certificate_checks import check_authority, check_served, check_shown
from privstats.engines.flower.certificates import write_certificates
from privstats.engines.flower.replaced_names import check_version
from privstats.engines.flower.server_clock import clock_sentence
from privstats.engines.journal import JournaledServer
from privstats.engines.journal.base import held
from privstats.engines.journal.client_file import receipt_and_agreement
from privstats.engines.network import statements
from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.host import Host
from privstats.engines.network.party import ANOTHER_VERSION, Party
from privstats.engines.network.status_file import Task, supervised
from privstats.engines.network.transport import CODES, Reply
from privstats.errors import InUseError, PrivstatsError
from privstats.secagg import Identity
from privstats.secagg.interactive import client
from tests import made
from tests.course.cases import rounds
from tests.engines.flower.tls import showing
from tests.engines.network.courses.study import DATASET, CourseStudy, another_weight, course_study
from tests.engines.network.fake import FolderNet, study_of
from tests.engines.network.test_swapped_replies import swap

PAGE = Path(__file__).parents[3] / "docs" / "between_machines.md"
VARIES = (
    (r"\b[0-9a-f]{8}\.\.\.", "#..."),
    (r"sessions/[0-9a-f]{32}", "sessions/#..."),
    (r"(on|is|at) 20\d\d-\d\d-\d\d", r"\1 #"),
    (r"127\.0\.0\.1:\d+", "coordinator.example:8000"),
    (r"'/[^']+/records.npz'", "'/srv/st-mary/records.npz'"),
    (r"give-up \S+/study/host", "give-up #"),
)
MARY = 103  # St. Mary's node, at place 3

Said = tuple[list[str], list[str]]


def rows() -> dict[str, tuple[str, str]]:
    """What happens, and what the two ends read, from the page."""
    text = PAGE.read_text("utf-8")
    table = text[text.index("| happens |") :].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {happens.replace("`", ""): (plain(server), plain(party)) for happens, server, party in cells}


def plain(cell: str) -> str:
    for pattern, mark in VARIES:
        cell = re.sub(pattern, mark, cell.strip("`"))
    return cell


class Town(FolderNet):
    """The network with names."""

    def name(self, node: int) -> str:
        return {MARY: "st-mary", 199: "ulm"}.get(node, f"node-{node}")

    def said(self) -> Said:
        try:
            found = self.run()
        except PrivstatsError as error:
            return [*self.lines, str(error)], self.logs[MARY]
        return [*self.lines, found.sentence], self.logs[MARY]


def town(place: Path, **changes) -> Town:
    return Town(study_of(place, **changes))


def at(net: Town, kind: str, act: Callable[[Path], None]) -> None:
    """Have something happen at St. Mary's before it answers its first message of a kind."""
    done: list[str] = []

    def meanwhile(node: int, coming: str) -> None:
        if (node, coming) == (MARY, kind) and not done:
            done.append(coming)
            act(net.homes[MARY])

    net.meanwhile = meanwhile


def another_plan(place: Path, patch) -> Said:
    net = town(place)
    other = replace(net.study.plan, cohort=ps.Cohort(5, 3, 90))
    (net.homes[MARY] / "plan.toml").write_text(other.to_toml())
    return net.said()


def another_roster(place: Path, patch) -> Said:
    net = town(place)
    net.study.roster.renewed().save(net.homes[MARY] / "roster.toml")
    return net.said()


def another_version_of_privstats(place: Path, patch) -> Said:
    """St. Mary's runs a version that knows no envelope in a session alone, until it is updated."""
    net = town(place)
    plain, identity, said = net.told, net.study.identities[3], []

    def told(node: int, message: bytes) -> Reply:
        if node != MARY or net.now > 90:
            return plain(node, message)
        said.append(ANOTHER_VERSION)
        return Reply("failed", statements.sign_reply(identity, 3, message, "failed"))

    net.told = told
    lines, _ = net.said()
    assert ps.Release.load(net.study.host / "release.safetensors").survivors == (0, 1, 2, 3, 4)
    return lines, said


def not_on_the_roster(place: Path, patch) -> Said:
    net = town(place)
    (net.homes[MARY] / "identity.pem").unlink()
    Identity.generate(os.urandom).save(net.homes[MARY] / "identity.pem")
    return net.said()


def bad_data(place: Path, patch) -> Said:
    net = town(place)
    np.savez(net.homes[MARY] / "records.npz", X=np.full((4, 3), np.nan), y=np.zeros(4, int))
    return net.said()


def no_data(place: Path, patch) -> Said:
    net = town(place)
    (net.homes[MARY] / "records.npz").unlink()
    return net.said()


def full_disk(place: Path, patch) -> Said:
    return failing_once(town(place), patch, errno.ENOSPC)


def lost_permission(place: Path, patch) -> Said:
    return failing_once(town(place), patch, errno.EACCES)


def failing_once(net: Town, patch, number: int) -> Said:
    """The disk of St. Mary's fails at the next write."""
    plain_sync, due = os.fsync, [True]

    def fails(handle: int) -> None:
        if due:
            due.clear()
            raise OSError(number, os.strerror(number))
        plain_sync(handle)

    at(net, "step", lambda _: patch.setattr(os, "fsync", fails))
    return net.said()


def budget_spent(place: Path, patch) -> Said:
    net = town(place, privacy=made.promise("distributed", epsilon=2.0))
    for node, home in net.homes.items():
        Folder.open(home).ledger.set_cap("hips", **made.cap(1.0 if node == MARY else 9.0))
    return net.said()


def session_over_there(place: Path, patch) -> Said:
    net = town(place)
    word = statements.session_ended(net.study.server, statements.Header.of(net.study.plan, net.study.roster))

    def end(home: Path) -> None:
        assert Party.open(home).first.answer("over", word).code == "ok"

    at(net, "step", end)
    return net.said()


def same_home_twice(place: Path, patch) -> Said:
    net, locks = town(place), []

    def occupy(home: Path) -> None:
        path = home / "sessions" / f"{Folder.open(home).round(0).session}.lock"
        lock = held(path)
        locks.append(lock)
        lock.__enter__()

    at(net, "step", occupy)
    wait = net.sleep

    def sleep(seconds: float) -> None:
        wait(seconds)
        while locks and net.now > 20:
            locks.pop().__exit__(KeyError, KeyError(), None)  # it lets go of the lock where its block fails

    net.sleep = sleep
    return net.said()


def one_key_on_two_machines(place: Path, patch) -> Said:
    net = town(place)
    shutil.copytree(net.homes[MARY], place / "copy", copy_function=shutil.copy2)
    net.nodes.append(199)
    net.homes[199], net.logs[199] = place / "copy", []
    machines = {199: "another"}  # where nothing was counted
    net.meanwhile = lambda node, _: patch.setenv("XDG_STATE_HOME", str(place / machines.get(node, "state")))
    net.comes = {104: 60.0}
    return net.said()


def damage_on_the_way(place: Path, patch) -> Said:
    net = town(place)
    plain_answer, hit = net.answer, []

    def answer(node: int, kind: str, data: bytes):
        if (node, kind) == (MARY, "step") and not hit:
            hit.append(kind)
            data = data[:-1] + bytes([data[-1] ^ 1])
        return plain_answer(node, kind, data)

    net.answer = answer
    return net.said()


def replies_of_two_nodes_are_mixed_up(place: Path, patch) -> Said:
    """Both had been lost to the session: each was sent what was sealed for the other."""
    net = town(place)
    swap(net, "open", nodes=(MARY, 104))
    lines, said = net.said()
    assert ps.Release.load(net.study.host / "release.safetensors").survivors == (0, 1, 2, 3, 4)
    return lines, said


def with_a_clock(net: Town, patch, kind: str, days: int) -> None:
    """Let the first helper's clock be off for one message of a kind."""
    plain, real, off = net.told, time.time, [105]

    def told(node: int, message: bytes) -> Reply:
        if node not in off or statements.Envelope.decode(message).kind != kind:
            return plain(node, message)
        off.clear()
        patch.setattr(time, "time", lambda: real() + days * 86_400)
        try:
            return plain(node, message)
        finally:
            patch.setattr(time, "time", real)

    net.told = told


def a_helpers_clock_is_ahead(place: Path, patch) -> Said:
    """By forty days, for one message; it had destroyed the key, and with it every upload."""
    net = town(place, protocol="split")
    with_a_clock(net, patch, "helper", 40)
    lines, _ = net.said()
    assert ps.Release.load(net.study.host / "release.safetensors").survivors == (0, 1, 2, 3, 4)
    return lines, net.logs[105]


def a_helpers_clock_was_behind_at_its_start(place: Path, patch) -> Said:
    """By forty days; the parties had been told to set theirs."""
    net = town(place, protocol="split")
    with_a_clock(net, patch, "hello", -40)
    return net.said()


def spoiled(place: Path, code: str) -> Said:
    """What a carrier cannot read of one reply of St. Mary's; the next one is good."""
    net = town(place)
    plain, bad = net.told, [Reply(code)]
    net.told = lambda node, message: bad.pop() if node == MARY and bad else plain(node, message)
    lines, said = net.said()
    assert ps.Release.load(net.study.host / "release.safetensors").survivors == (0, 1, 2, 3, 4)
    return lines, said


def an_answer_that_cannot_be_read(place: Path, patch) -> Said:
    return spoiled(place, "malformed")


def an_answer_that_is_too_large(place: Path, patch) -> Said:
    return spoiled(place, "too_large")


def its_folder_was_replaced(place: Path, patch) -> Said:
    net = town(place)
    at(net, "step", lambda home: shutil.rmtree(home / "sessions"))
    return net.said()


def its_folder_was_put_back_from_a_backup(place: Path, patch) -> Said:
    net, asked = town(place), []

    def meanwhile(node: int, kind: str) -> None:
        if (node, kind) == (MARY, "step"):
            asked.append(kind)
            sessions, backup = net.homes[MARY] / "sessions", place / "backup"
            if len(asked) == 1:
                shutil.copytree(sessions, backup)
            elif len(asked) == 3:
                shutil.copytree(backup, sessions, dirs_exist_ok=True)

    net.meanwhile = meanwhile
    said = net.said()
    folder = Folder.open(net.homes[MARY]).round(0)
    assert receipt_and_agreement(folder.home / "sessions" / folder.session, folder.key) == (b"", {}), (
        "it has ended there too"
    )
    assert len(said[1]) == 1
    return said


def the_hosts_folder_was_put_back_from_a_backup(place: Path, patch) -> Said:
    net = town(place, cohort=ps.Cohort(5, 4, 100))
    journal, backup = net.study.host / "journal", place / "backup"
    net.goes = dict.fromkeys(range(102, 105), 0.0)
    net.run()
    shutil.copytree(journal, backup)
    net.goes = {}
    net.meanwhile = lambda node, kind: patch.setattr(JournaledServer, "end_step", raising) if kind == "step" else None
    before = JournaledServer.end_step
    with pytest.raises(KeyboardInterrupt):
        net.run()
    patch.setattr(JournaledServer, "end_step", before)
    for path in journal.iterdir():
        path.unlink()
    shutil.copytree(backup, journal, dirs_exist_ok=True)
    said = net.said()
    assert "it was given up" in Host.open(net.study.host).give_up()
    return said


def raising(*_: object) -> None:
    raise KeyboardInterrupt


def clock_off(place: Path, patch) -> Said:
    return [], [clock_sentence("coordinator.example:8000", -7200.0)]


def the_certificates_have_ended(place: Path, patch) -> Said:
    patch.chdir(place)
    write_certificates(Path("certificates"), ["127.0.0.1"], days=10, now=datetime.now(UTC) - timedelta(days=12))
    shutil.copy("certificates/ca.pem", "ca.pem")
    return refusals(lambda: check_served(Path("certificates")), lambda: check_authority(Path("ca.pem")))


def the_servers_own_has_ended_as_under_an_authority_of_yours(place: Path, patch) -> Said:
    the_certificates_have_ended(place, patch)
    write_certificates(Path("new"), ["127.0.0.1"], days=10)
    shutil.copy("new/ca.pem", "ca.pem")
    shutil.copy("new/ca.pem", "certificates/ca.pem")
    with showing(Path("certificates")) as superlink:
        return refusals(lambda: check_served(Path("certificates")), lambda: check_shown(superlink, Path("ca.pem")))


def another_certificate(place: Path, patch) -> Said:
    patch.chdir(place)
    for name in ("certificates", "other"):
        write_certificates(Path(name), ["127.0.0.1"], days=10)
    shutil.copy("other/ca.pem", "ca.pem")
    shutil.copy("other/ca.pem", "certificates/ca.pem")
    with showing(Path("certificates")) as superlink:
        return refusals(lambda: check_served(Path("certificates")), lambda: check_shown(superlink, Path("ca.pem")))


def refusals(*checks: Callable[[], object]) -> Said:
    said: list[list[str]] = []
    for check in checks:
        with pytest.raises(PrivstatsError) as refused:
            check()
        said.append([str(refused.value)])
    return said[0], said[1]


def node_restarted_too_early(place: Path, patch) -> Said:
    net = town(place)

    def restart(_: Path) -> None:
        net.goes, net.comes = {}, {MARY: 60.0}

    at(net, "open", restart)
    return net.said()[0], [launch.reason_of(launch.Ending(1, refused=True))]


def a_dispute_over_shares(place: Path, patch) -> Said:
    real = client.fits_share

    def fits(*given: object, owner: int, holder: int, **named: object) -> bool:
        return (owner, holder) != (3, 0) and real(*given, owner=owner, holder=holder, **named)

    patch.setattr(client, "fits_share", fits)
    net = town(place)
    net.ended()
    return net.said()


def wrong_host_or_port_or_serve_does_not_run(place: Path, patch) -> Said:
    return [], [launch.no_answer("coordinator.example:8000")]


def twice(place: Path, patch, home: Path, task: Task) -> list[str]:
    (place / home).mkdir(parents=True)
    patch.chdir(place)
    patch.setattr(os, "getpid", lambda: 4711)
    with supervised(home, task, ""), pytest.raises(InUseError) as caught, supervised(home, task, ""):
        pass
    return [str(caught.value)]


def join_twice_on_one_folder(place: Path, patch) -> Said:
    return [], twice(place, patch, Path("study/bonn"), "joined")


def serve_twice_on_one_folder(place: Path, patch) -> Said:
    return twice(place, patch, Path("study/host"), "served"), []


def node_not_registered(place: Path, patch) -> Said:
    return [], [launch.reason_of(launch.Ending(1, refused=True))]


def too_few_at_a_deadline(place: Path, patch) -> Said:
    net = town(place, cohort=ps.Cohort(5, 4, 100))

    def crash(node: int, kind: str) -> None:
        if node == 100 and net.lines and net.lines[-1].startswith("step share"):
            net.goes = {101: 0.0, MARY: 0.0}

    net.meanwhile = crash
    return net.said()


def a_helper_is_missing(place: Path, patch) -> Said:
    net = town(place, protocol="split")
    net.goes = {106: 0.0}
    return net.said()


def second_flwr_run_while_one_works(place: Path, patch) -> Said:
    net = town(place)
    (net.study.host / "journal").mkdir()
    with held(net.study.host / "journal"):
        return net.said()


def flwr_run_after_the_end(place: Path, patch) -> Said:
    net = town(place)
    net.goes = {MARY: 0.0}
    net.run()
    return net.said()


def flwr_run_after_give_up(place: Path, patch) -> Said:
    net = town(place)
    net.goes = dict.fromkeys(range(102, 105), 0.0)
    net.run()
    Host.open(net.study.host).give_up()
    return net.said()


def release_refused(place: Path, patch) -> Said:
    net, plain_measure = town(place), ps.measure

    def lie(schema, X, y, **named):
        whole = plain_measure(schema, X, y)
        return sum([whole] * 3) if len(y) < 13 else whole

    patch.setattr("privstats.engines.network.measuring.measuring", lambda *_: lie)
    study = net.study
    for home in (study.host, *net.homes.values()):
        (home / "plan.toml").write_text(replace(study.plan, cohort=ps.Cohort(5, 3, 36)).to_toml())
    net.study = replace(study, plan=replace(study.plan, cohort=ps.Cohort(5, 3, 36)))
    return net.said()


def upload_above_512_mib(place: Path, patch) -> Said:
    net = town(place)
    big = replace(net.study.plan, schema=ps.ClassSchema(2, 20000, "NAB", clip_norm=1.0))
    said = []
    for home in (net.study.host, net.homes[MARY]):
        (home / "plan.toml").write_text(big.to_toml())
        with pytest.raises(PrivstatsError) as refused:
            Folder.open(home)
        said.append(str(refused.value))
    return [said[0]], [said[1]]


def other_flower_version(place: Path, patch) -> Said:
    patch.setattr(metadata, "version", lambda _: "1.43.0")
    with pytest.raises(PrivstatsError) as refused:
        check_version()
    return [str(refused.value)], [str(refused.value)]


def of_a_course(place: Path, node: int, spoil: Callable[[CourseStudy], None]) -> Said:
    """A course that comes to a node, after something was done to St. Mary's folder at its start or before it."""
    net = FolderNet(course_study(place))
    net.name = lambda node: "st-mary" if node == MARY else f"node-{node}"  # type: ignore[method-assign]
    done: list[int] = []

    def meanwhile(peer: int, kind: str) -> None:
        if net.envelope.place == node and not done:
            done.append(node)
            spoil(net.study)

    net.meanwhile = meanwhile
    found = net.run()
    return [*net.lines, found.sentence], net.logs[MARY]


def another_course(place: Path, patch) -> Said:
    return of_a_course(place, 0, lambda study: write(study.home(3) / "course.toml", rounds(rounds=3)) and None)


def a_round_that_does_not_follow(place: Path, patch) -> Said:
    real = Folder.store

    def keep(folder: Folder, node: int, plan: ps.Plan) -> RoundFolder:
        return real(folder, node, another_weight(plan) if node == 1 and folder.home.name == "host" else plan)

    patch.setattr(Folder, "store", keep)
    return of_a_course(place, 9, lambda _: None)


def killed_between_mark_and_noise(place: Path, patch) -> Said:
    def begin(study: CourseStudy) -> None:
        folder = Folder.open(study.home(3))
        folder.ledger.mark_started(folder.entry(DATASET), 1)

    return of_a_course(place, 1, begin)


@pytest.mark.ci
@pytest.mark.parametrize("happens", rows())
def test_both_ends_read_what_the_page_says(happens: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is provoked by the function of its name here."""
    name = re.sub(r"\W+", "_", happens.replace("'", "").lower())
    found = globals()[name](tmp_path, monkeypatch)
    assert any(rows()[happens]), "a row without a word holds nothing"
    for wanted, lines in zip(rows()[happens], found, strict=True):
        assert not wanted or wanted in list(map(plain, lines)), "\n".join(lines)


def test_no_code_says_anything_of_the_data() -> None:
    for code in CODES.values():
        assert re.sub(r"\{plan\}", "", code.sentence).count("{") == 0
