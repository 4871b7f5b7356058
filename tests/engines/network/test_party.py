"""A party's folder: an answer to every message, or a code where it has none; nothing leaves that was not kept first."""

import hashlib
import os
import shutil
import sqlite3
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.engines.journal import expiry
from privstats.engines.journal.base import held
from privstats.engines.journal.client_file import forget_answer
from privstats.engines.network import measuring, statements
from privstats.engines.network.folder import Folder
from privstats.engines.network.folder_status import status_of
from privstats.engines.network.host import Host
from privstats.engines.network.measuring import records_of
from privstats.engines.network.party import RETAIN_SECONDS, Party, RoundParty, answer
from privstats.engines.network.roles import HelperRole
from privstats.engines.network.round_host import Ended
from privstats.engines.network.transport import Answer, Reply
from privstats.errors import DataError, LedgerError, LocalProtocolError
from privstats.kinds import GradientSchema
from privstats.schema.public_values import Published, Values
from privstats.secagg import Identity
from tests import made
from tests.engines.network.fake import FolderNet, enveloped, study_of
from tests.engines.network.fake import records_of as raw_records_of
from tests.faults import Fuse, sigkill

HERE = "from pathlib import Path\nHERE = Path(__file__).parent\n"
WITHHELD = '"privstats flower check" shows its text, which may hold records'


def opening_of(study) -> bytes:
    """The opening that the study's host would send, from a server that nobody keeps."""
    header = statements.Header.of(study.plan, study.roster).encode()
    server = ps.session.server(study.plan, study.roster, identity=study.server)
    return header + server.start().to(0)


def party_of(study, peer: int = 0) -> tuple[RoundParty, list[str]]:
    said: list[str] = []
    return Party.open(study.home(peer), said.append).first, said


def test_an_answer_is_given_once_and_then_repeated(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    opening, (party, said) = opening_of(study), party_of(study)
    first = party.answer("open", opening)
    assert first.code == "ok"
    found = statements.read_signed_reply(
        first.data, hashlib.sha256(opening).digest(), "ok", [i.public for i in study.identities]
    )
    assert found.place == 0
    assert party_of(study)[0].answer("open", opening) == first
    assert party.answer("hello", opening).code == "ok"
    assert not said
    (account,) = Ledger.open(study.home(0) / "ledger").accounts()
    assert len(account.entries) == 1


@pytest.mark.parametrize("kind", ["round", "another version's"])
def test_a_refusal_is_signed_as_the_answer_to_the_message_that_it_refuses(tmp_path: Path, kind: str) -> None:
    """Unsigned, or signed over another question, anybody on the wire could have refused in the party's name."""
    study = study_of(tmp_path)
    data = enveloped(study, "step", b"x")
    refused = answer(study.home(1), kind, data, simulated=True)
    question = b"x" if kind == "round" else data
    publics = [identity.public for identity in study.identities]
    found = statements.read_signed_reply(refused.data, hashlib.sha256(question).digest(), refused.code, publics)
    assert refused.code in {"lost", "version"}
    assert (found.place, found.payload) == (1, b"")
    for other, code in ((b"y", refused.code), (question, "ok")):
        assert statements.read_signed_reply(refused.data, hashlib.sha256(other).digest(), code, publics) is None


def test_attack_an_answer_under_another_key_is_refused_in_one_sentence_and_let_go_of(tmp_path: Path) -> None:
    """Closed twice, the lock's handle would be another file's by then."""
    study = study_of(tmp_path)
    party_of(study)[0].answer("open", opening_of(study))
    path = study.home(0) / "sessions" / Folder.open(study.home(0)).round(0).session
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match="written under another key"):
            forget_answer(path, bytes(32))


def test_attack_whoever_holds_the_ledger_for_a_while_costs_the_party_no_run(
    tmp_path: Path, monkeypatch, caplog
) -> None:
    """Said to have failed, or to have no budget, it would not be asked again before the step is closed without it."""
    study = study_of(tmp_path)
    party_of(study)[0].answer("hello", opening_of(study))
    monkeypatch.setattr("privstats.engines.network.folder_documents.Ledger.open", partial(Ledger.open, timeout=0.01))
    monkeypatch.setattr(
        "privstats.engines.network.folder_documents.Ledger.create", partial(Ledger.create, timeout=0.01)
    )
    holder = sqlite3.connect(study.home(0) / "ledger", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert answer(study.home(0), "round", b"not looked at", simulated=True).code == "busy"
    assert "is locked by another process: try again" in caplog.text
    holder.close()
    for number, code in (
        (sqlite3.SQLITE_BUSY, "busy"),
        (sqlite3.SQLITE_FULL, "disk"),
        (sqlite3.SQLITE_CORRUPT, "ledger"),
    ):
        cause = sqlite3.OperationalError()
        cause.sqlite_errorcode = number
        refusal = LedgerError("what the ledger says")
        refusal.__cause__ = cause

        def spend(*_, refusal=refusal, **__):
            raise refusal

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "spend", spend)
            party, said = party_of(study)
            assert party.answer("open", opening_of(study)).code == code
            assert said == ["what the ledger says"]
    assert answer(study.home(0), "round", enveloped(study, "open", opening_of(study)), simulated=True).code == "ok"


def test_a_folder_that_cannot_be_opened_answers_with_a_code_and_tells_its_operator(tmp_path: Path, caplog) -> None:
    study = study_of(tmp_path)
    (study.home(0) / "plan.toml").write_text("nonsense")
    assert answer(study.home(0), "open", b"", simulated=True) == Answer("failed")
    assert [each.name for each in caplog.records] == ["privstats.party"]
    assert answer(study.home(1), "round", enveloped(study, "step", b"x"), simulated=True).code == "lost"
    assert "is gone, and with it this party's part" in caplog.text


def test_whatever_is_not_foreseen_is_a_code_and_its_text_stays(tmp_path: Path, monkeypatch) -> None:
    """Flower would send the text of an exception to the server: a value of record 17, for example."""
    study = study_of(tmp_path)
    party, said = party_of(study)
    monkeypatch.setattr("privstats.engines.network.parts.records_of", lambda _: 1 / 0)
    refused = party.answer("open", opening_of(study))
    assert refused.code == "failed"
    assert b"division" not in refused.data
    assert len(refused.data) == 68
    assert "ZeroDivisionError" in said[0]
    assert "parts.py" in said[0]
    assert "division" not in said[0], "an error's text may hold a record"


@pytest.mark.parametrize("kind", ["", "ope", "answer", "hello\0"])
def test_a_kind_of_message_that_nobody_knows_is_a_code(tmp_path: Path, kind: str) -> None:
    party, said = party_of(study_of(tmp_path))
    assert party.answer(kind, b"").code == "version"
    assert "another version of this engine" in said[0]


@pytest.mark.parametrize("kind", ["hello", "open", "step", "helper", "over"])
@pytest.mark.parametrize("data", [b"", b"\0" * 63, b"\xff" * 64, b"\0" * 5000])
def test_garbage_gets_a_code_and_changes_nothing(tmp_path: Path, kind: str, data: bytes) -> None:
    study = study_of(tmp_path)
    assert party_of(study)[0].answer(kind, data).code in {"damaged", "wrong_plan", "lost"}
    assert party_of(study)[0].answer("open", opening_of(study)).code == "ok"


@pytest.mark.ci
@pytest.mark.parametrize("protocol", ["interactive", pytest.param("split", marks=pytest.mark.nightly)])
def test_a_node_killed_at_every_single_write_of_a_session_answers_as_if_nothing_had_been(
    protocol: str, tmp_path: Path
) -> None:
    """For each message the node dies at its first write, is asked again and dies at its second, until none is left."""
    net = FolderNet(study_of(tmp_path, protocol))
    plain, deaths = net.answer, []

    def answer(node: int, kind: str, data: bytes) -> Reply:
        if node not in (101, 105):
            return plain(node, kind, data)
        for at in range(1, 50):
            reply = in_a_child(net.homes[node], kind, data, at)
            if reply is not None:
                return reply
            deaths.append(kind)
        raise AssertionError("it never got through")

    net.answer = answer
    found = net.run()
    assert found.releases[0].survivors == tuple(range(5))
    assert np.array_equal(found.releases[0].vector, net.study.exact(range(5)))
    assert len(deaths) > 10
    (account,) = Ledger.open(net.study.home(1) / "ledger").accounts()
    assert len(account.entries) == 1


def in_a_child(home: Path, kind: str, data: bytes, at: int) -> Reply | None:
    """What a folder answers in a process that is gone at its ``at``-th write; None where that was before the answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        Fuse(pytest.MonkeyPatch(), end=sigkill).left = at
        said = Party.open(home, lambda _: None).first.answer(kind, data)
        os.write(writing, said.code.encode().ljust(16) + said.data)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    return Reply(data[:16].decode().strip(), data[16:]) if os.waitstatus_to_exitcode(status) == 0 else None


class TestTheEnd:
    def test_only_the_server_on_the_roster_ends_a_session(self, tmp_path: Path) -> None:
        """A forged end would make a party drop its last answer, and the session with it."""
        study = study_of(tmp_path)
        opening, (party, said) = opening_of(study), party_of(study)
        first = party.answer("open", opening)
        stranger = Identity.generate(os.urandom)
        for forged in (
            statements.session_ended(stranger, party.folder.header),
            statements.session_ended(study.server, statements.Header(b"p" * 32, b"r" * 32)),
        ):
            assert party.answer("over", forged).code == "damaged"
        assert "did not declare this session over" in said[0]
        assert party.answer("open", opening) == first

    def test_after_it_nothing_is_answered_and_the_run_name_is_used_up(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        opening, (party, said) = opening_of(study), party_of(study)
        party.answer("open", opening)
        for _ in range(2):
            assert party.answer("over", statements.session_ended(study.server, party.folder.header)) == Answer("ok")
        for kind in ("open", "step"):
            assert party.answer(kind, opening).code == "over"
        assert set(said) == {"this party has finished this session and will not answer again"}

    def test_the_last_answer_is_repeated_until_then(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server killed while the last answers were on their way asks again, and else loses the session."""
        net = FolderNet(study_of(tmp_path))
        net.dropped = {"over"}
        assert isinstance(net.run(), Ended)
        last = next(data for node, _, data in reversed(net.pushed) if node == 100)
        party, said = party_of(net.study)
        assert party.answer("step", last).code == "ok"
        assert party.answer("step", last[:-1]).code == "over"
        path = net.study.home(0) / "sessions" / party.folder.session
        old = time.time() - RETAIN_SECONDS - 60
        os.utime(path, (old, old))
        party, said = party_of(net.study)
        assert party.answer("step", last).code == "ok", "one look at a clock removes nothing"
        assert "was not needed for 30 days: its last answer is removed after another day" in said[0]
        monkeypatch.setattr(expiry, "CONFIRMING_SECONDS", 0)
        party, said = party_of(net.study)
        assert party.answer("step", last).code == "over"
        assert said

    def test_an_old_answer_that_is_in_use_is_left_for_another_time(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        opening, (party, _) = opening_of(study), party_of(study)
        party.answer("open", opening)
        path = study.home(0) / "sessions" / party.folder.session
        os.utime(path, (0, 0))
        with suppress(KeyError), held(path.with_name(f"{path.name}.lock")):
            assert party_of(study)[0].answer("open", opening).code == "busy"
            raise KeyError

    def test_a_client_that_has_not_ended_is_kept_however_old_it_is(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        opening, (party, _) = opening_of(study), party_of(study)
        first = party.answer("open", opening)
        path = study.home(0) / "sessions" / party.folder.session
        os.utime(path, (0, 0))
        assert party_of(study)[0].answer("open", opening) == first

    def test_attack_what_is_old_and_does_not_open_costs_no_later_session(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A journal key that was lost, or a stray file, would else keep the party from every session to come."""
        study = study_of(tmp_path)
        (study.home(0) / "sessions").mkdir(mode=0o700)
        for name in (".DS_Store", "0" * 32):
            path = study.home(0) / "sessions" / name
            path.write_bytes(bytes(100))
            os.utime(path, (0, 0))
        monkeypatch.setattr(expiry, "CONFIRMING_SECONDS", 0)
        party, _ = party_of(study)
        party.forget_old()  # the first look at the clock
        party, said = party_of(study)
        assert party.answer("open", opening_of(study)).code == "ok"
        assert [line[:29] for line in sorted(said)] == [
            "sessions/.DS_Store is old and",
            "sessions/00000000000000000000",
        ]

    def test_a_party_that_never_took_part_hears_of_the_end_without_a_trace(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, "split")
        for peer in (0, 5):
            party, said = party_of(study, peer)
            assert party.answer("over", statements.session_ended(study.server, party.folder.header)).code == "ok"
            assert not said

    def test_a_lie_of_the_server_ends_the_session_here_and_is_named(self, tmp_path: Path) -> None:
        net = FolderNet(study_of(tmp_path))
        net.goes = dict.fromkeys(range(101, 105), 0.0)
        server = ps.session.server(net.study.plan, net.study.roster, identity=net.study.server)
        opening = statements.Header.of(net.study.plan, net.study.roster).encode() + server.start().to(0)
        advert = statements.read_signed_reply(
            net.told(100, enveloped(net.study, "open", opening)).data,
            hashlib.sha256(opening).digest(),
            "ok",
            net.study.roster.publics,
        )
        server.receive(0, advert.payload)
        abort = server.abandon().to(0)
        party, said = party_of(net.study)
        assert party.answer("step", abort) == Answer("ok")  # the server's own word, and no answer to it
        assert party.answer("step", abort).code == "over"


class TestRecords:
    def test_they_are_measured_once(self, tmp_path: Path, monkeypatch) -> None:
        study = study_of(tmp_path)
        folder = Folder.open(study.home(0)).round(0)
        first = records_of(folder)
        monkeypatch.setattr("privstats.engines.network.measuring.measuring", None)
        again = records_of(folder)
        assert again.moments == first.moments
        assert again.moments.clip_report == first.moments.clip_report
        assert (study.home(0) / "moments").stat().st_mode & 0o777 == 0o600

    def test_sums_at_the_probability_of_every_place_are_kept(self, tmp_path: Path, monkeypatch) -> None:
        study = study_of(tmp_path)
        folder = Folder.open(study.home(0)).round(0)
        schema = ps.EffectSchema.of({"a": (-1, 1)}, treatment="arm", outcome=(0, 1), probability=(0.5, 0.3, 0.5, 0.5))
        plan = ps.Effect.start(schema, ps.Cohort(4, 4, 900), made.promise()).plan
        X, y = np.c_[np.linspace(-1, 1, 9), np.arange(9) % 2], np.arange(9) % 2
        moments = ps.measure(schema, X, y, published=plan.published)
        monkeypatch.setattr(measuring, "_measured", lambda *_: moments)
        folder.ledger.set_cap("beds", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        folder = replace(folder, plan=plan)
        records_of(folder)
        monkeypatch.setattr(measuring, "_measured", None)
        again = records_of(folder).moments
        assert [again.for_client(place) for place in (0, 1)] == [moments.for_client(place) for place in (0, 1)]
        assert again.for_client(0) != again.for_client(1)

    @pytest.mark.parametrize("change", ["records.py", "account", "damage", "anew"])
    def test_and_again_where_something_changed(self, tmp_path: Path, change: str) -> None:
        study = study_of(tmp_path)
        home = study.home(0)
        folder = Folder.open(home).round(0)
        records_of(folder)
        X, y = raw_records_of(3)
        np.savez(home / "records.npz", X=X, y=y)
        if change == "records.py":
            (home / "records.py").write_text((home / "records.py").read_text() + "\n")
        elif change == "account":
            folder.ledger.set_cap("beds", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
        elif change == "damage":
            (home / "moments").write_bytes(b"x" * 100)
        assert records_of(folder, anew=change == "anew").moments == ps.measure(study.plan.schema, X, y)

    def test_a_party_may_bring_moments_or_batches(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        folder, (X, y) = Folder.open(study.home(0)).round(0), raw_records_of(0)
        whole = ps.measure(study.plan.schema, X, y)
        for body in ("ps.measure(ps.Plan.read(HERE / 'plan.toml').schema, *pair)", "[pair, pair][:1]"):
            (study.home(0) / "records.py").write_text(
                f"{HERE}import numpy as np\nimport privstats as ps\ndef load():\n"
                f"    data = np.load(HERE / 'records.npz')\n    pair = data['X'], data['y']\n    return {body}\n"
            )
            assert records_of(folder).moments == whole
        (study.home(0) / "records.py").write_text(
            f"{HERE}import numpy as np\nfrom privstats import Plan\nfrom privstats.kinds import ClassMoments\n"
            "def load():\n    schema = Plan.read(HERE / 'plan.toml').schema\n"
            "    return ClassMoments(schema, np.ones(2, int), np.ones((2, 3), int))\n"
        )
        assert records_of(folder).moments == records_of(folder).moments
        assert records_of(folder).moments.records == 2

    def test_attack_moments_of_another_schema_are_refused_a_second_time_too(self, tmp_path: Path) -> None:
        """Kept before they are refused, they would be read as the plan's from then on, in other units."""
        study = study_of(tmp_path)
        (study.home(0) / "records.py").write_text(
            f"{HERE}from dataclasses import replace\nimport numpy as np\nimport privstats as ps\ndef load():\n"
            "    data, schema = np.load(HERE / 'records.npz'), ps.Plan.read(HERE / 'plan.toml').schema\n"
            "    return ps.measure(replace(schema, clip_norm=2 * schema.clip_norm), data['X'], data['y'])\n"
        )
        for _ in range(2):
            party, said = party_of(study)
            assert party.answer("open", opening_of(study)).code == "no_data"
            assert said == ["the moments were measured under another schema than the plan's; measure with plan.schema"]

    def test_sums_that_do_not_say_how_many_they_are_of_keep_their_count(self, tmp_path: Path) -> None:
        schema = ps.RidgeSchema(features=3, targets=1, clip_norm=2.0, target_bound=1.0)
        folder = Folder.open(study_of(tmp_path, schema=schema).home(0)).round(0)
        for _ in range(2):
            assert records_of(folder).moments.records == 9
        rounds = GradientSchema(3, residual_norm=1.0, expected_records=45, course_mu=1.0, target_bound=1.0)
        values = {"M": Values.rounded(np.eye(3)), "w": Values.rounded(np.ones(3)), "c": Values.rounded(1.0)}
        study = study_of(tmp_path / "rounds", schema=rounds, privacy=made.promise(), published=Published.of(values))
        Published.of(values).save(study.home(0) / "plan.values")
        folder = Folder.open(study.home(0)).round(0)
        folder.ledger.set_cap("beds", **made.cap(1.0))
        for _ in range(2):
            assert records_of(folder).moments.records == 9

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("from privstats.errors import DataError\ndef load(): raise DataError('no rows today')", "^no rows today$"),
            ("raise RuntimeError('no')", "records.py does not run: RuntimeError: no"),
            ("raise SystemExit('no records of ward 3')", "^records.py does not run: SystemExit: no records of ward 3$"),
            ("import sys\ndef load(): sys.exit(3)", r"^load\(\) in records.py failed: SystemExit: 3$"),
            ("x = 1", "must define load"),
            (
                "def load(): return open('nowhere')",
                r"load\(\) in records.py failed \(name .* Path\(__file__\)\.parent.*\): FileNotFoundError",
            ),
            ("dataset = 7\ndef load(): pass", "dataset is a name"),
            ("allow_second_exact_release = 'yes'\ndef load(): pass", "True or False, or left out"),
            ("import numpy as np\ndef load(): return np.full((4, 3), np.nan), np.zeros(4, int)", "remove or impute"),
        ],
    )
    def test_attack_records_that_fail_or_exit_are_one_sentence_and_a_code(
        self, tmp_path: Path, text: str, why: str
    ) -> None:
        """A script that exits ends no node without an answer, and what it says stays out of the log."""
        study = study_of(tmp_path)
        (study.home(0) / "records.py").write_text(text)
        with pytest.raises(DataError, match=why):
            records_of(Folder.open(study.home(0)).round(0))
        party, said = party_of(study)
        assert party.answer("open", opening_of(study)).code == "no_data"
        assert len(said) == 1
        if "Exit" in why:
            assert said[0].endswith(f"SystemExit; {WITHHELD}")

    def test_the_account_is_the_one_that_is_named_or_the_only_one(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        folder = Folder.open(study.home(0)).round(0)
        cap = {"unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}
        assert records_of(folder).charge.dataset == "records"
        folder.ledger.set_cap("beds", **cap)
        assert records_of(folder).charge.dataset == "beds"
        folder.ledger.set_cap("wards", **cap)
        with pytest.raises(
            LedgerError, match='the ledger has 2 accounts: say in records.py which one to charge, dataset = "..."'
        ):
            records_of(folder)
        text = (study.home(0) / "records.py").read_text()
        (study.home(0) / "records.py").write_text(f'dataset = "wards"\n{text}')
        assert records_of(folder).charge.dataset == "wards"

    def test_a_second_exact_release_is_refused_unless_the_party_allows_it(self, tmp_path: Path) -> None:
        net = FolderNet(study_of(tmp_path))
        net.run()
        study = net.study.renewed()
        party, said = party_of(study)
        assert party.answer("open", opening_of(study)).code == "ledger"
        assert "exact sums" in said[0]
        text = (study.home(0) / "records.py").read_text()
        (study.home(0) / "records.py").write_text(f"allow_second_exact_release = True\n{text}")
        assert party_of(study)[0].answer("open", opening_of(study)).code == "ok"


class TestTheFolder:
    @pytest.mark.parametrize(
        ("name", "mode", "why"),
        [
            (".", 0o750, "others can look into party 0: let only its owner, chmod 700"),
            ("identity.pem", 0o640, "others can read identity.pem: let only its owner, chmod 600"),
            ("journal.key", 0o604, "others can read journal.key"),
            ("moments", 0o644, "others can read moments"),
            ("records.py", 0o622, "others can change records.py"),
            ("plan.toml", 0o660, "others can change plan.toml"),
            ("roster.toml", 0o602, "others can change roster.toml"),
        ],
    )
    def test_it_is_its_owners_alone(self, tmp_path: Path, name: str, mode: int, why: str) -> None:
        study = study_of(tmp_path)
        party_of(study)[0].prepare()
        (study.home(0) / name).chmod(mode)
        with pytest.raises(LocalProtocolError, match=why):
            Party.open(study.home(0))

    @pytest.mark.parametrize("there", [(), ("roster.toml",), ("plan.toml",)])
    def test_another_folder_is_named_and_nobody_is_told_to_close_it(self, tmp_path: Path, there: tuple) -> None:
        """The remedy for a party's folder does harm elsewhere: chmod 700 of ``/`` locks everybody else out."""
        wrong = tmp_path / "wrong"
        wrong.mkdir(mode=0o755)
        for name in there:
            (wrong / name).touch()
        for opened in (Party.open, Host.open, status_of):
            with pytest.raises(
                LocalProtocolError, match=r"wrong is no folder of a party or a server \(it has no "
            ) as no:
                opened(wrong)
            assert "chmod" not in str(no.value)
        with pytest.raises(LocalProtocolError, match="^/ is no folder of a party or a server .it has no"):
            Party.open("/")

    def test_a_remedy_is_for_the_folder_it_is_about(self, tmp_path: Path) -> None:
        """Without quotes it is for two others: ``/tmp/my`` and ``study/host``."""
        home = study_of(tmp_path).home(0)
        place = home.rename(tmp_path / "my party; true")
        place.chmod(0o755)
        with pytest.raises(LocalProtocolError, match=f"chmod 700 '{place}'$"):
            Party.open(place)

    def test_a_key_that_was_cut_short_is_refused(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        Party.open(study.home(0))
        (study.home(0) / "journal.key").write_bytes(b"short")
        with pytest.raises(LocalProtocolError, match="journal.key must hold 32 bytes, and has 5"):
            Party.open(study.home(0))

    def test_two_processes_that_start_at_once_share_one_key(self, tmp_path: Path, monkeypatch) -> None:
        from privstats.engines.network import folder_documents as module

        study, plain = study_of(tmp_path), module.write_new

        def quicker(path: Path, data: bytes) -> None:
            plain(path, b"q" * 32)
            plain(path, data)

        monkeypatch.setattr(module, "write_new", quicker)
        assert Folder.open(study.home(0)).key == b"q" * 32

    def test_a_folder_that_cannot_be_written_says_so(self, tmp_path: Path, monkeypatch) -> None:
        def full(*_: object) -> None:
            raise ps.errors.PrivstatsError("cannot write journal.key: No space left on device; nothing was written")

        monkeypatch.setattr("privstats.engines.network.folder_documents.write_new", full)
        with pytest.raises(ps.errors.PrivstatsError, match="No space left"):
            Folder.open(study_of(tmp_path).home(0))

    def test_a_ledger_that_was_lost_is_no_new_budget(self, tmp_path: Path) -> None:
        net = FolderNet(study_of(tmp_path))
        net.run()
        home = net.study.home(0)
        (home / "ledger").rename(tmp_path / "ledger")
        with pytest.raises(LedgerError, match="is gone: restore it, because what it held is spent"):
            Party.open(home)
        (home / "ledger").write_bytes(b"no ledger at all" * 100)
        with pytest.raises(LedgerError, match="ledger"):
            Party.open(home)

    def test_plan_and_roster_must_fit(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        other = made.plan(study.plan.schema, ps.Cohort(4, 3, 100))
        (study.home(0) / "plan.toml").write_text(other.to_toml())
        with pytest.raises(LocalProtocolError, match="the roster has 5 clients and the plan cohort.clients=4"):
            Party.open(study.home(0))
        panels = study_of(tmp_path / "other", "split")
        panels.roster.save(panels.home(0) / "roster.toml")
        text = panels.roster.to_toml().replace(panels.server.public.hex(), os.urandom(32).hex())
        (panels.home(0) / "roster.toml").write_text(text)
        with pytest.raises(LocalProtocolError, match="is not the leader that the plan's panel names"):
            Party.open(panels.home(0))


class TestHelpers:
    def test_a_helper_prepares_without_records(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, "split")
        party, _ = party_of(study, 5)
        assert isinstance(party.role, HelperRole)
        assert party.prepare() is None

    def test_each_is_only_asked_for_what_it_is(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, "split")
        header = statements.Header.of(study.plan, study.roster).encode()
        helped = statements.to_helper(header, b"message")
        (client, one), (helper, other) = party_of(study, 0), party_of(study, 5)
        assert client.answer("helper", helped).code == "refused"
        assert helper.answer("step", b"message").code == "refused"
        assert helper.answer("helper", helped).code == "lost"
        assert "takes this party for a helper" in one[0]
        assert "takes this helper for a client" in other[0]
        assert helper.answer("open", header).code == "ok"
        helper.answer("hello", header)
        assert helper.answer("helper", helped).code == "refused"
        assert "holds no panel of this plan" in other[-1]

    def test_a_helper_that_has_answered_says_so(self, tmp_path: Path) -> None:
        net = FolderNet(study_of(tmp_path, "split"))
        net.run()
        party, said = party_of(net.study, 5)
        assert party.answer("hello", statements.Header.of(net.study.plan, net.study.roster).encode()).code == "over"
        question = next(data for node, kind, data in reversed(net.pushed) if (node, kind) == (105, "helper"))
        assert party.answer("helper", question).code == "ok"
        assert party.answer("helper", question[:-1]).code == "over"
        assert set(said) == {"this party has finished this session and will not answer again"}

    def test_a_helper_that_was_put_back_sits_the_run_out_and_signs_nothing(self, tmp_path: Path) -> None:
        """Its twin has answered here, so nobody may hear that it never did."""
        net = FolderNet(study_of(tmp_path, "split"))
        sessions, backup = net.study.home(5) / "sessions", tmp_path / "backup"

        def meanwhile(node: int, kind: str) -> None:
            if (node, kind) == (105, "helper") and not backup.exists():
                shutil.copytree(sessions, backup)

        net.meanwhile = meanwhile
        net.run()
        shutil.rmtree(sessions)
        shutil.copytree(backup, sessions)
        party, said = party_of(net.study, 5)
        header = statements.Header.of(net.study.plan, net.study.roster)
        question = next(data for node, kind, data in net.pushed if (node, kind) == (105, "helper"))
        assert party.answer("helper", question).code == "restored"
        assert "was put back from a backup or copied: it may have answered more than it knows" in said[-1]
        offers = next(data for node, kind, data in net.pushed if (node, kind) == (100, "open"))[len(header.encode()) :]
        assert party.answer("over", statements.session_ended(net.study.server, header, beside=offers)) == Answer(
            "ok", b""
        )
        assert party.answer("helper", question).code == "over"
