"""Every command with every file that is none: it ends soon, with one sentence and no traceback.

Commands, and which of their parameters are files, are read from the command line itself. What a command needs besides
is a sample by the parameter's own name, so a new command joins by itself.
"""

import os
import random
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import click
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.contrib.http import standing
from privstats.contrib.http.folders import helper_folder
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.settings import Settings
from privstats.engines.carriers import ConnectionStatus, write_status
from privstats.errors import PrivstatsError
from tests import made
from tests.contrib.http.desk import DeskDial, Paused, pumped, reporting
from tests.engines.network.fake import FolderNet, study_of
from tests.without import present

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


ENDS = (SystemExit, PrivstatsError, *present({"a helper": Paused}).values())


def _traceback(name, act):
    """What a call ends in other than a sentence."""
    try:
        with _bounded():
            act()
    except ENDS:
        return []
    except Exception as reason:
        if isinstance(reason, OSError) and reason.errno is not None:
            return []  # the command line says it in a sentence
        return [f"{name} ends in {type(reason).__name__}: {reason}"]
    return []


def _command(words):
    result = CliRunner().invoke(app, words)
    if result.exception is not None:
        raise result.exception


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
    [
        *((kind, "") for kind in BROKEN),
        *(("pipe", suffix) for suffix in SUFFIXES[1:]),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in product(BROKEN, SUFFIXES[1:])
            if each[0] != "pipe"
        ),
    ],
)
def test_every_command_refuses_a_file_that_is_none(kind, suffix, here):
    """Every file that the command takes is the broken one."""
    wrong = []
    for words, command in READERS.items():
        broken = here / f"broken {words}{suffix}".replace(" ", "-")
        BROKEN[kind](broken)

        def file_of(each, broken=broken, command=command):
            return broken if each in _files(command) and (each.required or each.name not in PASSPHRASES) else None

        wrong += _traceback(words, partial(_command, _call(words, command, file_of)))
    assert not wrong, "\n".join(wrong)


ONE_FILE = [
    (words, chosen)
    for words, command in READERS.items()
    for chosen in _files(command)
    if chosen.name not in WRITTEN | PASSPHRASES and words not in SERVERS
]


def _drawn(*case):
    """One kind of broken file, which follows from the case's name: the sample of every run; the night tries all."""
    return random.Random(" ".join(map(str, case))).choice(list(BROKEN))


def _one_file(kind, words, chosen, here):
    """What a command ends in where one file is broken, and the others are what they should be."""
    broken = here / f"broken {words} {chosen.name}".replace(" ", "-")
    BROKEN[kind](broken)
    command = READERS[words]

    def file_of(each):
        if each is chosen:
            return broken
        return here / GOOD.get(each.metavar, "missing") if each.required and each in _files(command) else None

    return _traceback(f"{words}, {chosen.name} a {kind},", partial(_command, _call(words, command, file_of)))


def test_every_file_of_a_command_is_read_with_the_same_care(here):
    wrong = [line for words, chosen in ONE_FILE for line in _one_file(_drawn(words, chosen.name), words, chosen, here)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", BROKEN)
def test_every_file_of_a_command_may_be_broken_in_every_way(kind, here):
    wrong = [line for words, chosen in ONE_FILE for line in _one_file(kind, words, chosen, here)]
    assert not wrong, "\n".join(wrong)


def _lead(home):
    LeaderRun.open(home, say=lambda _: None).close()


def _help(home):
    """Begin as ``http help`` does, with a leader who does not answer."""

    def pause(_):
        raise Paused

    folder, settings = helper_folder(home), Settings.read(home)
    Dialler(folder, settings, sleep=pause, connect=lambda *_: DeskDial(lambda: None), say=lambda _: None).run()


FOLDER_COMMANDS: Mapping[str, Callable[[Path], object]] = {
    words: lambda home, words=words: _command([*words.split(), str(home)])
    for words, command in READERS.items()
    if words.split()[0] in ("flower", "http")
    and words not in SERVERS
    and [each.name for each in _files(command) if each.required] == ["home"]
} | {"http lead": _lead, "http help": _help}
"""Commands that read a party's or a server's folder, and nothing else."""


class Tree:
    """Files that are put back in place: a copy of a folder has another inode, which a journal refuses unread."""

    def __init__(self, top):
        self.top = top
        self.files = {each: (each.read_bytes(), each.stat().st_mode) for each in top.rglob("*") if each.is_file()}
        self.folders = {each for each in top.rglob("*") if each.is_dir()}
        self.seen = {each: _seen(each) for each in self.files}

    def restore(self):
        for path in sorted(self.top.rglob("*"), reverse=True):
            if path not in self.folders and self.seen.get(path) != _seen(path):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in sorted(self.folders):
            path.mkdir(mode=0o700, exist_ok=True)
        for path, (data, mode) in self.files.items():
            if not path.exists():
                path.write_bytes(data)
                path.chmod(mode)
                self.seen[path] = _seen(path)


def _seen(path):
    found = path.lstat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """The folders of a server and a party after a session, and of a leader and a helper of devices in the midst of a
    run and after it, with every file that each leaves."""
    place = tmp_path_factory.mktemp("sessions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        net = FolderNet(study_of(place))
        net.run()
        homes = [net.study.host, net.homes[103]]
        for name in ("open", "ended"):
            with reporting(place / name, 5) as (study, desk, _, reports):
                assert {desk.put(study, index, report).status for index, report in enumerate(reports)} == {201}
                if name == "ended":
                    desk.call(desk.run.close_reports)
                    pumped(study, desk)
                assert (desk.run.ended is not None) == (name == "ended")
                seen = partial(standing.standing_of, desk.run, desk.app, desk.owner, ConnectionStatus(), 0.0, 0.0)
                write_status(study.leader, desk.call(seen))
            homes += [study.leader, study.helper(1)]
    return Tree(place), homes


@pytest.fixture
def homes(sessions, monkeypatch):
    """The folders as they were left, for each case anew."""
    tree, homes = sessions
    monkeypatch.setenv("XDG_STATE_HOME", str(tree.top / "state"))
    yield homes
    tree.restore()


def _cases(sessions):
    """Every file of the folders, but for a party's own program, with every command that reads a folder."""
    tree, homes = sessions
    files = [(home, each) for home in homes for each in sorted(tree.files) if each.is_relative_to(home)]
    return [(home, file, words) for home, file in files if file.suffix != ".py" for words in FOLDER_COMMANDS]


def _in_folder(tree, kind, home, file, words):
    """What a command ends in where one file of a folder is broken."""
    tree.restore()
    file.unlink()
    BROKEN[kind](file)
    return _traceback(f"{words} with {file.relative_to(tree.top)} a {kind}", partial(FOLDER_COMMANDS[words], home))


def test_every_folder_that_is_whole_is_read(sessions, homes):
    """Else the tests of broken ones would try nothing."""
    *_, leader, helper, ended, _ = homes
    for home in (leader, ended):
        _lead(home)
    with pytest.raises(Paused):
        _help(helper)


def test_files_of_a_folder_may_be_damaged(sessions, homes):
    """A hundred cases of the product, which are the same in every run."""
    chosen = random.Random(0).sample(list(product(BROKEN, _cases(sessions))), 100)
    wrong = [line for kind, case in chosen for line in _in_folder(sessions[0], kind, *case)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", BROKEN)
def test_every_file_of_a_folder_may_be_damaged_in_every_way(kind, sessions, homes):
    wrong = [line for case in _cases(sessions) for line in _in_folder(sessions[0], kind, *case)]
    assert not wrong, "\n".join(wrong)
