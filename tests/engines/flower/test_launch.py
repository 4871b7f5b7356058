"""What ``join`` and ``serve`` start, say and leave behind, with small programs in place of Flower's."""

import io
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from flwr.common.config import parse_config_args

from privstats.engines.flower import entrypoint_guard, launch, pulse, replaced_names
from privstats.engines.flower.certificates import write_certificates, write_node_key
from privstats.engines.flower.launch import Ending, reason_of
from privstats.engines.network.status_file import supervision
from privstats.errors import InUseError, PrivstatsError
from privstats.secagg import Identity
from tests.engines.flower.tls import showing
from tests.threads import lives, until

REFUSED = "print('[code: 2004] Failed to activate SuperNode'); raise SystemExit(1)"
ONLINE = "print('INFO : SuperNode ID: 1444', flush=True)"
WORKED = f"{ONLINE}; import os; os.write(int(os.environ['PRIVSTATS_PULSE']), b'ah')"


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "study" / "party"
    home.mkdir(parents=True)
    return home


@pytest.fixture
def given(tmp_path):
    """What ``join`` is given besides the folder."""
    write_certificates(tmp_path / "tls", ["ulm.example"], days=100)
    write_node_key(tmp_path / "node")
    return {"superlink": "127.0.0.1:8000", "root_certificates": tmp_path / "tls" / "ca.pem", "key": tmp_path / "node"}


SIGN = "import os; os.write(int(os.environ['PRIVSTATS_PULSE']), %r)"


def programs(monkeypatch, *sources):
    """Each start of the child runs the next of ``sources``; the last stays."""
    left = list(sources)

    def sleep(_):
        """Ctrl-C after the last of them has ended once."""
        if len(started) >= len(sources):
            raise KeyboardInterrupt

    def command(name):
        return [sys.executable, "-c", left.pop(0) if len(left) > 1 else left[0], name]

    started = []
    real = subprocess.Popen

    def popen(words, **options):
        if words[0] == sys.executable:  # the child, whose first words join computed once
            words = [*command(words[3]), *words[4:]]
            started.append((words, options))
        return real(words, **options)

    monkeypatch.setattr(entrypoint_guard, "command", lambda name: [sys.executable, "-c", "", name])
    monkeypatch.setattr(launch.subprocess, "Popen", popen)
    keep = launch._keep
    monkeypatch.setattr(launch, "_keep", lambda *given, **named: keep(*given, sleep, **named))
    monkeypatch.setattr(launch, "check_shown", lambda *_: None)
    return started


class TestJoin:
    def test_it_is_started_with_one_folder_of_programs_and_a_flower_folder_of_its_own(self, home, given, monkeypatch):
        started = programs(monkeypatch, "raise SystemExit(3)")
        assert launch.join(home, **given, say=lambda _: None) == 0
        ((words, options),) = started
        assert words[3] == "flower-supernode"
        option = dict(zip(words[4::2], words[5::2], strict=True))
        assert option["--superlink"] == "127.0.0.1:8000"
        assert option["--root-certificates"] == str(given["root_certificates"])
        assert option["--auth-supernode-private-key"] == str(given["key"])
        assert parse_config_args([option["--node-config"]]) == {"privstats-home": str(home)}
        assert 1024 < int(option["--port"]) < 65536
        assert "--insecure" not in words
        environment = options["env"]
        assert environment["PATH"] == str(home / ".programs")
        assert environment["FLWR_HOME"] == str(home / ".flower")
        assert environment["FLWR_TELEMETRY_ENABLED"] == "0"
        assert environment["PRIVSTATS_IDLE_SECONDS"] == "3.0"
        assert environment["FLWR_DISABLE_UPDATE_CHECK"] == "1"
        assert "flwr-clientapp" in {
            path.name for path in (home / ".programs").iterdir() if "exit 1" not in path.read_text()
        }
        assert stat.S_IMODE((home / ".flower").stat().st_mode) == 0o700

    def test_a_node_that_comes_back_too_early_is_started_until_it_is_let_in(self, home, given, monkeypatch):
        started = programs(monkeypatch, REFUSED, REFUSED, "", WORKED, "raise SystemExit(3)")
        said = []
        assert launch.join(home, **given, say=said.append) == 0
        assert len(started) == 5
        assert [sentence.split(";")[0] for sentence in said if "connected" not in sentence] == [
            "the SuperLink still holds our last connection",
            "the SuperLink still holds our last connection",
            "127.0.0.1:8000 ended our connection without a reason",
            "the node has ended",
            "flower-supernode ended with exit code 3: its own words are above",
        ]

    def test_the_signs_of_a_node_that_ended_before_the_first_look_count(self, home, given, monkeypatch):
        programs(monkeypatch, WORKED)
        start = launch._started

        def ended(*given):
            child = start(*given)
            child.wait()
            return child

        monkeypatch.setattr(launch, "_started", ended)
        said = []
        assert launch.join(home, **given, say=said.append) == 0
        assert said == ["the node has ended; starting it again in 1 s"]

    @pytest.mark.parametrize(("signs", "heard"), [(b"", False), (b"f", True), (b"fa", False)])
    def test_an_address_that_does_not_answer_is_named_while_the_node_tries_again(
        self, home, given, monkeypatch, signs, heard
    ):
        monkeypatch.setattr(launch, "_UNANSWERED_SECONDS", 0.0)
        programs(monkeypatch, f"{SIGN % signs}; import time; time.sleep(0.5)")
        said = []
        launch.join(home, **given, say=said.append)
        assert (launch.no_answer("127.0.0.1:8000") in said) is heard

    def test_each_change_of_the_connection_is_told_with_its_time(self, home, given, monkeypatch):
        programs(monkeypatch, "; import time; time.sleep(0.3); ".join(SIGN % sign for sign in (b"ah", b"f", b"a")))
        said = []
        launch.join(home, **given, say=said.append)
        day = rf"{datetime.now(UTC):%Y}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
        wanted = [
            f"connected since {day}",
            f"not connected since {day}: 127.0.0.1:8000 does not answer; trying again",
            rf"connected since {day}, after \d+ s without an answer",
            f"not connected since {day}: 127.0.0.1:8000 does not answer; trying again",
            "the node has ended; starting it again in 1 s",
        ]
        assert [bool(re.fullmatch(*each)) for each in zip(wanted, said, strict=True)] == [True] * 5, said

    def test_attack_a_node_that_lives_and_does_nothing_is_ended_with_what_it_started(
        self, home, given, monkeypatch, tmp_path
    ):
        """Before, one flipped bit left such a process behind, and join waited for its end."""
        monkeypatch.setattr(pulse, "SILENT_SECONDS", 0.5)
        orphan = tmp_path / "orphan"
        alive_only = (
            f"{SIGN % b'ah'}; import subprocess, sys, time, pathlib\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            f"pathlib.Path({str(orphan)!r}).write_text(str(child.pid))\ntime.sleep(60)"
        )
        started = programs(monkeypatch, alive_only, "raise SystemExit(3)")
        said = []
        assert launch.join(home, **given, say=said.append) == 0
        assert len(started) == 2
        assert f"{launch._STOPPED}; starting it again in 1 s" in said
        pid = int(orphan.read_text())
        assert not lives(pid)

    def test_a_node_whose_port_was_taken_is_started_again_on_another_one(self, home, given, monkeypatch):
        taken = "print('ERROR:    [Errno 98] error while binding: address already in use'); raise SystemExit(1)"
        ports = iter([20_001, 20_002])
        monkeypatch.setattr(launch, "free_port", lambda: next(ports))
        started = programs(monkeypatch, taken, "raise SystemExit(3)")
        said = []
        assert launch.join(home, **given, say=said.append) == 0
        assert [words[words.index("--port") + 1] for words, _ in started] == ["20001", "20002"]
        assert said == [
            "another program uses the port that was chosen for the node; the next start uses another port; starting it "
            "again in 1 s",
            "flower-supernode ended with exit code 3: its own words are above; starting it again in 2 s",
        ]

    @pytest.mark.ci
    def test_flowers_own_node_reports_that_its_port_was_taken(self, home, given):
        words = launch._supernode(home, given["superlink"], given["root_certificates"], given["key"])
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            ending = launch._watch([*words, "--port", port], launch._environment(home, "flwr-clientapp"))
        assert ending == Ending(1, port_in_use=True)

    def test_another_flower_is_refused_before_anything_is_written(self, home, given, monkeypatch):
        monkeypatch.setattr(replaced_names.importlib.metadata, "version", lambda _: "1.43.0")
        with pytest.raises(PrivstatsError, match=r"flwr 1\.43\.0 is installed"):
            launch.join(home, **given)
        assert not list(home.iterdir())

    def test_a_certificate_that_is_refused_starts_no_node(self, home, given, tmp_path, monkeypatch):
        monkeypatch.setattr(launch, "_LOOK_SECONDS", 0.0)
        started = []
        monkeypatch.setattr(launch, "_watch", lambda *words, **_: started.append(words))
        long_ago = datetime.now(UTC) - timedelta(days=12)
        write_certificates(tmp_path / "old", ["127.0.0.1"], days=10, now=long_ago)
        with showing(tmp_path / "old") as superlink, pytest.raises(PrivstatsError, match="shows ended on 20"):
            launch.join(home, **{**given, "superlink": superlink})
        assert started == []

    def test_a_handshake_that_fails_while_it_is_joined_is_looked_into(self, home, given, tmp_path, monkeypatch):
        started = programs(
            monkeypatch, *["print('ERROR : SSL/TLS handshake error detected.'); raise SystemExit(1)"] * 2
        )
        said = []
        answers = iter((None, None, PrivstatsError("ended on that day")))

        def shown(*_):
            if isinstance(answer := next(answers), PrivstatsError):
                raise answer

        monkeypatch.setattr(launch, "check_shown", shown)
        assert launch.join(home, **given, say=said.append) == 0
        assert [sentence.partition(",")[0] for sentence in said] == [
            "the TLS handshake with the SuperLink failed",
            "ended on that day; starting it again in 2 s",
        ]
        assert len(started) == 2

    def test_one_look_at_a_spoiled_handshake_refuses_nothing(self, home, given, monkeypatch):
        answers = iter((PrivstatsError("does not speak TLS"), None))

        def shown(*_):
            if isinstance(answer := next(answers), PrivstatsError):
                raise answer

        started = programs(monkeypatch, "raise SystemExit(3)")
        monkeypatch.setattr(launch, "_LOOK_SECONDS", 0.0)
        monkeypatch.setattr(launch, "check_shown", shown)
        assert launch.join(home, **given, say=lambda _: None) == 0
        assert len(started) == 1

    def test_the_end_of_ca_pem_is_in_its_standing_and_said_a_month_before(self, home, given, tmp_path, monkeypatch):
        ends, said = [], []
        monkeypatch.setattr(
            launch, "_watch", lambda *_, **__: ends.append(supervision(home, "joined").certificate_ends)
        )
        launch.join(home, **given, say=said.append)
        assert said == []
        write_certificates(tmp_path / "soon", ["ulm.example"], days=20)
        with showing(tmp_path / "soon") as superlink:
            more = {"root_certificates": tmp_path / "soon" / "ca.pem", "superlink": superlink}
            launch.join(home, **{**given, **more}, say=said.append)
        assert [round((end - time.time()) / 86_400) for end in ends] == [100, 20]
        assert [sentence.partition(" ends on ")[0] for sentence in said] == [
            str(tmp_path / "soon" / "ca.pem"),
            f"the certificate that {superlink} shows",
        ]

    @pytest.mark.parametrize(
        ("given_as", "values", "words"),
        [
            ("root_certificates", ("gone",), "there is no root certificate at"),
            (
                "root_certificates",
                ("tls/server.key", "node.pub", "empty"),
                "%s is no certificate: ask the coordinator",
            ),
            ("key", ("gone",), "there is no node key at"),
            (
                "key",
                ("identity.pem", "node.pub", "tls/ca.pem", "ed25519"),
                "%s is no node key: .privstats flower key NEW. makes one",
            ),
            ("home", ("gone",), "there is no folder"),
            ("home", ("it's", "two\nlines"), "without quotes and line breaks"),
            ("idle_seconds", (0.0, -1.0, 61.0, float("nan")), r"--idle-seconds must be 0\.1 to 60, not "),
        ],
    )
    def test_what_it_cannot_be_given_is_named_before_flower_starts(
        self, home, given, tmp_path, monkeypatch, given_as, values, words
    ):
        started = programs(monkeypatch, "raise SystemExit(3)")
        (tmp_path / "empty").touch()
        (tmp_path / "it's").mkdir()
        (tmp_path / "two\nlines").mkdir()
        Identity.generate(os.urandom).save(tmp_path / "identity.pem")
        kept = {"encoding": Encoding.PEM, "format": PrivateFormat.OpenSSH}
        strange = ed25519.Ed25519PrivateKey.generate().private_bytes(**kept, encryption_algorithm=NoEncryption())
        (tmp_path / "ed25519").write_bytes(strange)
        for value in values:
            changed = {given_as: tmp_path / value if isinstance(value, str) else value}
            with pytest.raises(PrivstatsError, match=words.replace("%s", str(value))):
                launch.join(**{"home": home, **given, **changed})
        assert started == []

    def test_a_folder_that_cannot_be_written_is_one_sentence(self, home, given):
        (home / ".flower").write_text("")
        with pytest.raises(PrivstatsError, match=r"cannot write .*\.flower: File exists; nothing was started"):
            launch.join(home, **given)

    def test_a_folder_with_spaces_and_backslashes_arrives_as_it_is(self, tmp_path):
        odd = tmp_path / 'a "b" \\n c'
        assert parse_config_args([f"privstats-home={launch._quoted(odd)}"]) == {"privstats-home": str(odd)}

    def test_a_second_join_of_one_folder_names_the_first(self, home, given, monkeypatch):
        started = programs(monkeypatch, "raise SystemExit(3)")
        said = []

        def again(sentence):
            said.append(sentence)
            with pytest.raises(InUseError, match=f"{home} is joined already by process {os.getpid()}: end it first"):
                launch.join(home, **given)
            (home / ".joined").write_text("")  # as if the first had not written its id yet
            with pytest.raises(InUseError, match="is joined already by another process: end it first"):
                launch.join(home, **given)

        assert launch.join(home, **given, say=again) == 0
        assert len(said) == len(started) == 1
        assert launch.join(home, **given, say=lambda _: None) == 0, "it ends with the first"


class TestKeep:
    def kept(self, *endings, sleep=lambda _: None, once=False):
        said, left = [], list(endings)
        code = launch._keep(lambda: left.pop(0), said.append, reason_of, sleep, once=once)
        return code, said, left

    def test_a_key_that_the_superlink_does_not_know_is_named_from_the_first_refusal_on(self):
        code, said, _ = self.kept(Ending(1, refused=True), Ending(0, online=True), Ending(1, refused=True), None)
        assert code == 0
        assert ["privstats flower register" in sentence for sentence in said] == [True, False, True]

    def test_ctrl_c_between_two_starts_ends_it(self):
        def interrupt(_):
            raise KeyboardInterrupt

        code, _, left = self.kept(Ending(1, refused=True), Ending(2), sleep=interrupt)
        assert (code, left) == (0, [Ending(2)])

    def test_no_ending_is_the_last_and_the_pause_grows_until_a_node_has_worked(self):
        waited = []
        failed = [Ending(code, bad_tls=code == 1) for code in (0, 1, 2, -9)] * 2
        worked = [Ending(0, online=True, lasted=59.0), Ending(0, online=True, lasted=60.0), Ending(1)]
        code, _, left = self.kept(*failed, *worked, None, sleep=waited.append)
        assert (code, left) == (0, [])
        assert waited == [1, 2, 4, 8, 16, 32, 60, 60, 60, 1, 2]

    def test_a_server_that_never_worked_ends_and_one_that_did_is_started_again(self):
        assert self.kept(Ending(7), None, once=True)[0] == 7
        assert self.kept(Ending(7, online=True), Ending(7), None, once=True)[0] == 0


class TestServe:
    @pytest.fixture
    def certificates(self, tmp_path):
        write_certificates(tmp_path / "certificates", ["ulm.example"], days=100)
        return tmp_path / "certificates"

    def test_it_is_started_with_tls_and_node_authentication(self, home, certificates, monkeypatch):
        started = programs(monkeypatch, "raise SystemExit(7)")
        said = []
        assert launch.serve(home, certificates=certificates, address="0.0.0.0:8123", say=said.append) == 7
        ((words, options),) = started
        assert words[3] == "flower-superlink"
        assert "--enable-supernode-auth" in words
        assert "--disable-runtime-dependency-installation" in words
        assert "--insecure" not in words
        assert words[words.index("--host") + 1] == "127.0.0.1"
        assert words[words.index("--port") + 1] == "8001"
        assert options["env"]["PRIVSTATS_FLEET_ADDRESS"] == "0.0.0.0:8123"
        assert options["env"]["PRIVSTATS_HOME"] == str(home)
        assert options["env"]["PATH"] == str(home / ".programs")
        connections = tomllib.loads((home / ".flower" / "config.toml").read_text())["superlink"]
        assert connections["study"] == {"address": "127.0.0.1:8001", "root-certificates": str(certificates / "ca.pem")}
        assert said == [f"for every flwr command here: export FLWR_HOME={home}/.flower; the connection is study"]

    def test_a_study_that_is_called_as_flower_calls_its_default_is_called_study(
        self, tmp_path, certificates, monkeypatch
    ):
        home = tmp_path / "default" / "host"
        home.mkdir(parents=True)
        programs(monkeypatch, "")
        assert launch.serve(home, certificates=certificates, address="127.0.0.1:8123", say=lambda _: None) == 0
        connections = tomllib.loads((home / ".flower" / "config.toml").read_text())["superlink"]
        assert connections["default"] == "study"
        assert connections["study"]["address"] == "127.0.0.1:8001"

    @pytest.mark.parametrize("port", [8123, 0, 65536])
    def test_a_control_port_that_is_the_parties_or_none_is_named(self, home, certificates, port):
        with pytest.raises(PrivstatsError, match="another than the one for parties, 8123: give --control-port"):
            launch.serve(home, certificates=certificates, address="127.0.0.1:8123", control_port=port)

    def test_interfaces_that_listen_everywhere_stay_off_whatever_the_environment_says(
        self, home, certificates, monkeypatch
    ):
        monkeypatch.setenv("FLWR_INTERNAL_GRPC_CONTROL_API", "1")
        started = programs(monkeypatch, "")
        launch.serve(home, certificates=certificates, address="127.0.0.1:8123", say=lambda _: None)
        ((_, options),) = started
        assert options["env"]["FLWR_INTERNAL_GRPC_CONTROL_API"] == "0"
        assert options["env"]["FLWR_INTERNAL_GRPC_FLEET_API"] == "0"

    def test_a_superlink_that_answers_nothing_any_more_is_started_again(self, home, certificates, monkeypatch):
        monkeypatch.setattr(pulse, "SILENT_SECONDS", 0.5)
        answers = iter((True,))
        monkeypatch.setattr(launch, "_answers", lambda *_: next(answers, False))
        monkeypatch.setattr(launch, "_PROBE_SECONDS", 0.0)
        started = programs(monkeypatch, "import time; time.sleep(60)", "raise SystemExit(7)")
        said = []
        assert launch.serve(home, certificates=certificates, address="127.0.0.1:8123", say=said.append) == 0
        assert len(started) == 2
        assert said[1:] == [
            f"{launch._SERVER_STOPPED}; starting it again in 1 s",
            f"{launch._SERVER_ENDED}; starting it again in 2 s",
        ]

    @pytest.mark.parametrize("name", ["ca.pem", "server.pem", "server.key"])
    def test_a_certificate_that_is_missing_is_named(self, home, certificates, name):
        (certificates / name).unlink()
        with pytest.raises(PrivstatsError, match=f"there is no {name} at"):
            launch.serve(home, certificates=certificates, address="127.0.0.1:8000")

    def test_certificates_that_parties_would_refuse_start_nothing(self, home, tmp_path, monkeypatch):
        started = programs(monkeypatch, "")
        long_ago = datetime.now(UTC) - timedelta(days=12)
        write_certificates(tmp_path / "old", ["ulm.example"], days=10, now=long_ago)
        with pytest.raises(PrivstatsError, match=rf"old/ca\.pem ended on {long_ago + timedelta(days=10):%Y-%m-%d}"):
            launch.serve(home, certificates=tmp_path / "old", address="127.0.0.1:8123")
        assert started == []
        assert not list(home.iterdir())

    def test_the_end_of_its_certificates_is_in_its_standing_and_said_a_month_before(
        self, home, certificates, tmp_path, monkeypatch
    ):
        ends, said = [], []
        monkeypatch.setattr(
            launch, "_watch", lambda *_, **__: ends.append(supervision(home, "served").certificate_ends)
        )
        launch.serve(home, certificates=certificates, address="127.0.0.1:8123", say=said.append)
        assert len(said) == 1
        write_certificates(tmp_path / "soon", ["ulm.example"], days=20)
        launch.serve(home, certificates=tmp_path / "soon", address="127.0.0.1:8123", say=said.append)
        assert [round((end - time.time()) / 86_400) for end in ends] == [100, 20]
        assert said[1].startswith(f"the certificate in {tmp_path / 'soon'} ends on ")
        assert said[1].endswith(", in 19 days: new ones must be at every party before")

    @pytest.mark.parametrize("address", ["8000", ":8000", "host", "host:", "host:0", "host:65536", "host:http"])
    def test_an_address_that_is_none_is_named(self, home, certificates, address):
        with pytest.raises(PrivstatsError, match="the address must be HOST:PORT"):
            launch.serve(home, certificates=certificates, address=address)


class TestWatch:
    def test_what_the_child_prints_is_passed_on(self):
        log = io.StringIO()
        ending = launch._watch([sys.executable, "-c", ONLINE], os.environ, log)
        assert ending == Ending(0), "a line of a log is no work"
        assert log.getvalue() == "INFO : SuperNode ID: 1444\n"

    def test_what_the_child_started_ends_with_it(self, tmp_path, monkeypatch):
        """Flower's executors outlive a killed node for a moment, and hold what it held."""
        monkeypatch.setattr(launch, "_GRACE_SECONDS", 0.2)
        left = (
            "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; "
            "time.sleep(60)']); print(child.pid)"
        )
        log = io.StringIO()
        assert launch._watch([sys.executable, "-c", left], os.environ, log) == Ending(0)
        orphan = int(log.getvalue())
        until(lambda: not lives(orphan))

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_whoever_stops_it_lets_the_child_take_its_leave(self, tmp_path, number):
        """Killed, a node would be refused for a minute; one that took its leave may come back at once."""
        left = tmp_path / "left"
        source = (
            "import pathlib, signal, sys, time\n"
            f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(left)!r}).write_text('left'), sys.exit(0)))\n"
            "print('ready', flush=True)\ntime.sleep(60)"
        )

        class Interrupting(io.StringIO):
            def write(self, text):
                threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
                return len(text)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores Ctrl-C
        try:
            with launch._sigterm_is_ctrl_c():
                assert launch._watch([sys.executable, "-c", source], os.environ, Interrupting()) is None
        finally:
            signal.signal(signal.SIGINT, before)
        assert left.read_text() == "left"


def test_sigterm_is_what_it_was_after_a_node_has_ended():
    before = signal.getsignal(signal.SIGTERM)
    with launch._sigterm_is_ctrl_c():
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before
    with ThreadPoolExecutor(1) as pool:
        pool.submit(launch._sigterm_is_ctrl_c().__enter__).result()
    assert signal.getsignal(signal.SIGTERM) is before
