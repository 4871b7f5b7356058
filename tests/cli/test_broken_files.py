"""Every command with every file that is none: it ends soon, with one sentence and no traceback.

Commands, and which of their parameters are files, are read from the command line itself. What a command needs besides
is a sample by the parameter's own name, so a new command joins by itself.
"""

import os
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.errors import PrivstatsError
from tests import made
from tests.engines.network.fake import FolderNet, study_of

SECONDS = 20
"""Far more than any of these needs; a reader that waits for a pipe would wait for ever."""
DEEP = 100_000
HOLE = 5 << 30


def _hole(path):
    """Five GB of nothing behind a header that is a release's, as large as a file system lets anyone claim."""
    header = b'{"__metadata__":{"format":"privstats-release","version":"3","manifest":"{}","sha256":""},'
    header += b'"vector":{"dtype":"I64","shape":[%d],"data_offsets":[0,%d]}}' % (HOLE // 8, HOLE)
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + HOLE)


BROKEN = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "hole": _hole,
    "empty": Path.touch,
    "no UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00\x80" * 64),
    "zeros": lambda path: path.write_bytes(bytes(4096)),
    "deep JSON": lambda path: path.write_bytes(b"[" * DEEP),
    "deep object": lambda path: path.write_bytes(b'{"a":' * DEEP),
    "deep TOML": lambda path: path.write_bytes(b"a = " + b"[" * DEEP),
    "a course of no plan": lambda path: path.write_text('version = 2\nkind = "rounds"\nplan = ""\n'),
    "a list of lists": lambda path: path.write_text('version = 2\nkind = "rounds"\nclip = [[[[1]]]]\n'),
    "no list": lambda path: path.write_bytes(b"null"),
}

USUAL = {
    "KEY": "ab" * 32,
    "NAME=KEY...": "a=" + "ab" * 32,
    "HOST:PORT": "127.0.0.1:9",
    "https://HOST[:PORT]": "https://127.0.0.1:9",
    "https://HOST/PATH": "https://127.0.0.1:9/page",
    "TIME": "2099-01-01T00:00:00Z",
}
"""What stands for other required values, by the name that the command line shows; else a value of the type."""

GOOD = {
    "PLAN.TOML": "plan.toml", "COURSE.TOML": "course.toml", "ROSTER.TOML": "roster.toml", "LEDGER.DB": "ledger.db",
    "IDENTITY.PEM": "me.pem", "RELEASE": "release", "A.TOML": "plan.toml", "B.TOML": "plan.toml", "FILE": "release",
}  # fmt: skip
PASSPHRASES = {"passphrase_file", "new_passphrase_file"}
"""A pipe is how a password manager gives a passphrase, so these wait for one: the user named it."""
WRITTEN = {"out", "figure", "page", "checker"}
"""Parameters that name what a command writes."""


def _commands(command=None, words=()):
    command = command or typer.main.get_command(app)
    if not isinstance(command, click.Group) and not hasattr(command, "list_commands"):
        return {words: command}
    found, context = {}, click.Context(command)
    for name in command.list_commands(context):
        found |= _commands(command.get_command(context, name), (*words, name))
    return found


def _files(command):
    return [each for each in command.params if "Path" in type(each.type).__name__]


READERS = {
    " ".join(words): command
    for words, command in _commands().items()
    if any(each.name not in WRITTEN for each in _files(command))
}
SERVERS = {"flower join", "flower serve", "http lead", "http help"}
"""These go on for as long as nothing is wrong, so they get no file that may be right."""


def _value(parameter, file):
    if "Path" in type(parameter.type).__name__:
        return str(file)
    kind = type(parameter.type).__name__
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    usual = "1" if kind.startswith(("Int", "Float")) else str(file)
    return USUAL.get(parameter.metavar, usual)


def _call(words, command, file_of):
    options, values = [], []
    for each in command.params:
        file = file_of(each)
        if file is None and not each.required:
            continue
        value = _value(each, file)
        if each.param_type_name == "argument":
            values.append(value)
        else:
            options += [each.opts[0], value]
    return [*words.split(), *options, *values]


@contextmanager
def _bounded():
    def waits(*_):
        raise AssertionError(f"nothing happens for {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, waits)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _traceback(words):
    """What a command ends in other than a sentence."""
    with _bounded():
        reason = CliRunner().invoke(app, words).exception
    good = reason is None or isinstance(reason, SystemExit | PrivstatsError)
    return [] if good else [f"{' '.join(words)} ends in {type(reason).__name__}: {reason}"]


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    place = tmp_path_factory.mktemp("good")
    plan = made.plan(ps.ClassSchema(2, 3, "NAB", 4.0), ps.Cohort(2, 2, 9))
    (place / "plan.toml").write_text(plan.to_toml())
    (place / "course.toml").write_text((place / "plan.toml").read_text())
    people = [ps.secagg.Identity(bytes([k + 1]) * 32) for k in range(3)]
    people[0].save(place / "me.pem")
    ps.secagg.Roster([each.public for each in people[:2]], server=people[2].public).save(place / "roster.toml")
    ps.dp.Ledger.create(place / "ledger.db")
    ps.Release(plan, np.zeros(plan.layout.size, np.int64), (0, 1)).save(place / "release")
    return place


@pytest.fixture
def here(tmp_path, samples, monkeypatch):
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


SUFFIXES = ("", ".parquet", ".csv", ".npy", ".npz")
"""By these a reader of tables chooses its way of opening them."""


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [*((kind, "") for kind in BROKEN), *(("pipe", suffix) for suffix in SUFFIXES[1:])],
)
def test_every_command_refuses_a_file_that_is_none(kind, suffix, here):
    """Every file that the command takes is the broken one."""
    wrong = []
    for words, command in READERS.items():
        broken = here / f"broken {words}{suffix}".replace(" ", "-")
        BROKEN[kind](broken)

        def file_of(each, broken=broken, command=command):
            return broken if each in _files(command) and (each.required or each.name not in PASSPHRASES) else None

        wrong += _traceback(_call(words, command, file_of))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["pipe", "deep JSON", "hole"])
def test_every_file_of_a_command_is_read_with_the_same_care(kind, here):
    """One file after another is the broken one, and the others are what they should be."""
    wrong = []
    for words, command in READERS.items():
        for chosen in _files(command):
            if chosen.name in WRITTEN | PASSPHRASES or words in SERVERS:
                continue
            broken = here / f"broken {words} {chosen.name}".replace(" ", "-")
            BROKEN[kind](broken)

            def file_of(each, chosen=chosen, broken=broken, command=command):
                if each is chosen:
                    return broken
                return here / GOOD.get(each.metavar, "missing") if each.required and each in _files(command) else None

            wrong += _traceback(_call(words, command, file_of))
    assert not wrong, "\n".join(wrong)


FOLDER_COMMANDS = [
    words
    for words, command in READERS.items()
    if words.split()[0] in ("flower", "http") and [each.name for each in _files(command) if each.required] == ["home"]
]
"""Commands that read a party's or a server's folder, and nothing else."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """The folders of a party and of a server after a session, with every file that one leaves."""
    net = FolderNet(study_of(tmp_path_factory.mktemp("study")))
    net.run()
    return [net.study.host, net.homes[103]]


@pytest.mark.parametrize("kind", ["pipe", "folder", "no UTF-8", "zeros", "deep JSON", "deep object", "no list"])
def test_every_file_of_a_folder_may_be_damaged(kind, homes, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    wrong = []
    for home in homes:
        for file in sorted(each.relative_to(home) for each in home.rglob("*") if each.is_file()):
            if file.suffix == ".py":
                continue  # a party's own program
            for words in set(FOLDER_COMMANDS) - SERVERS:
                copy = tmp_path / "study" / home.name
                shutil.copytree(home, copy)
                (copy / file).unlink()
                BROKEN[kind](copy / file)
                wrong += [f"{file}: {each}" for each in _traceback([*words.split(), str(copy)])]
                shutil.rmtree(copy)
    assert not wrong, "\n".join(wrong)
