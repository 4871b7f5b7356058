"""The files of ``docs/production``: every command in them is one of ours, and their study ends in a release."""

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from privstats.cli.main import app
from privstats.release import Release
from tests.without import WHOLE

yaml = pytest.importorskip("yaml", reason="it comes with Flower")

FOLDER = Path(__file__).parents[2] / "docs" / "production"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
COUNTERS = "/srv/counters"
PARTIES = [f"party{number}" for number in range(1, 6)]
UNITS = ["privstats-server.service", "privstats-party.service", "privstats-http.service"]


def parsed(words):
    """The words of a command as our command line takes them, without running it."""
    command, context = typer.main.get_command(app), None
    while hasattr(command, "get_command"):
        context = command.make_context(words[0], words[:1], parent=context, resilient_parsing=True)
        command, words = command.get_command(context, words[0]), words[1:]
        assert command is not None
    return command.make_context(command.name, list(words), parent=context).params


def unit(name):
    reader = configparser.ConfigParser(strict=False, interpolation=None)
    reader.optionxform = str
    reader.read(FOLDER / name)
    return reader


@WHOLE
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_starts_a_command_that_there_is_and_lets_it_take_its_leave(name):
    service = unit(name)["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert Path(program).name == "privstats"
    assert str(parsed(words)["home"]) in ("study/host", "party", "leader")
    assert float(service["TimeoutStopSec"]) > 20, "a node is given 20 s to take its leave"
    assert "KillSignal" not in service, "SIGTERM, which is systemd's own, is what is handled"


@WHOLE
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_has_started_when_the_folder_says_so(name):
    service = unit(name)["Service"]
    shell, option, script = shlex.split(service["ExecStartPost"])
    words = shlex.split(re.fullmatch(r"until (.*) > /dev/null; do sleep 2; done", script)[1])
    assert (shell, option) == ("/bin/sh", "-c")
    assert Path(words[0]) == Path(shlex.split(service["ExecStart"])[0])
    asked = parsed(words[1:])
    assert str(asked["home"]) == str(parsed(shlex.split(service["ExecStart"])[1:])["home"])
    assert asked["ready"] or asked["healthy"]
    assert float(service["TimeoutStartSec"]) >= 90


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_keeps_keys_off_the_disk_and_the_service_in_its_folder(name):
    service = unit(name)["Service"]
    assert (service["LimitCORE"], service["MemorySwapMax"], service["UMask"]) == ("0", "0", "0077")
    assert (service["ProtectSystem"], service["ReadWritePaths"]) == ("strict", service["WorkingDirectory"])
    assert service["User"] != "root"


@pytest.mark.parametrize("name", UNITS)
def test_what_notices_a_restore_lies_outside_of_what_is_restored(name):
    service = unit(name)["Service"]
    assert service["Environment"] == f"XDG_STATE_HOME=/var/lib/{service['StateDirectory']}"
    assert f"ENV XDG_STATE_HOME={COUNTERS}" in (FOLDER / "Containerfile").read_text()
    assert all(f"counters:{COUNTERS}" in each["volumes"] for each in COMPOSE.values())


def test_the_services_of_the_compose_file_run_commands_that_there_are():
    commands = {name: each["command"] for name, each in COMPOSE.items() if "command" in each}
    assert sorted(commands) == [*PARTIES, "server"]
    assert {name: parsed(words)["home"] for name, words in commands.items()} == {
        "server": "study/host",
        **{name: name for name in PARTIES},
    }
    asked = {name: parsed(COMPOSE[name]["healthcheck"]["test"][2:]) for name in commands}
    assert {name: str(each["home"]) for name, each in asked.items()} == {
        name: str(parsed(words)["home"]) for name, words in commands.items()
    }
    assert all(each["ready"] for each in asked.values())
    assert COMPOSE["party3"]["depends_on"] == {"server": {"condition": "service_healthy"}}
    for each in COMPOSE.values():
        assert each["cap_drop"] == ["ALL"]
        assert each["ulimits"] == {"core": 0}
    mounted = [Path(volume.split(":")[0]).name for each in COMPOSE.values() for volume in each["volumes"]]
    assert {"study.sh", "coordinate.sh"} <= set(mounted)


def test_the_scripts_call_commands_that_there_are():
    text = (FOLDER / "study.sh").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in re.sub(r"<<'?PLAN'?\n.*?\nPLAN\n", "\n", text, flags=re.DOTALL).splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("privstats ")]
    assert len(commands) == 8
    for words in commands:
        parsed(words)


def test_the_proxy_passes_what_parties_need_and_nothing_else():
    from privstats.engines.flower.addresses import MOST_REQUEST

    text = re.sub(r"#.*", "", (FOLDER / "nginx.conf").read_text())
    locations = dict(re.findall(r"location (\S+) \{(.*?)\}", text, re.DOTALL))
    assert set(locations) == {"/v1/fleet/", "/"}
    assert locations["/"].split() == ["return", "404;"]
    assert "proxy_pass https://127.0.0.1:8000;" in locations["/v1/fleet/"]
    assert "proxy_ssl_verify on;" in locations["/v1/fleet/"]
    (most,) = re.findall(r"client_max_body_size (\d+)m;", text)
    assert 5 << 20 < int(most) << 20 <= MOST_REQUEST


@pytest.mark.nightly
@pytest.mark.waits
def test_the_study_of_the_compose_file_ends_in_a_release(tmp_path):
    """Its own commands, as processes of this machine; the server's name and port are the one thing that is changed."""
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    shell = shutil.which("sh")

    def run(words, **options):
        return subprocess.Popen(words, cwd=tmp_path, env=environment, **options)

    def service(name):
        words = [word.replace("server:8000", "localhost:8711") for word in COMPOSE[name]["command"]]
        words = [word.replace("0.0.0.0:8000", "127.0.0.1:8711") for word in words]
        with (tmp_path / f"{name}.log").open("w") as log:
            return run([scripts / "privstats", *words], stdout=log, stderr=subprocess.STDOUT)

    assert run([shell, FOLDER / "study.sh", "localhost"]).wait(300) == 0
    children = [service("server"), *map(service, PARTIES)]
    try:
        assert run([shell, FOLDER / "coordinate.sh"]).wait(900) == 0
        release = Release.load(tmp_path / "study" / "host" / "release.safetensors")
        assert release.survivors == (0, 1, 2, 3, 4)
    finally:
        for child in children:
            child.send_signal(signal.SIGTERM)
        endings = [child.wait(60) for child in children]
    assert endings == [0] * 6, [(tmp_path / f"{name}.log").read_text()[-2000:] for name in ("server", *PARTIES)]
