"""Profiles for the property tests: ``dev`` is quick, ``ci`` is thorough, ``nightly`` is for a free machine.

Choose one with HYPOTHESIS_PROFILE; CI chooses ``ci`` by itself.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: the test workers share the cores already
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")  # the command line sets it, here in the process of the tests
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes read what the first has compiled

import gc
import logging
import re
import secrets
import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution

import pytest
from hypothesis import HealthCheck, settings

from privstats.cli import main
from tests import core, night, seers, without
from tests.brought import bring_modules
from tests.drawing import named
from tests.lacking import skipped_where_lacking, why_skipped
from tests.leftovers import ProcessState, left_behind
from tests.watchdog import watch

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors]

settings.register_profile("dev", max_examples=15, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("ci", max_examples=30, deadline=None, suppress_health_check=_SLOW_IS_FINE, derandomize=True)
settings.register_profile("brief", settings.get_profile("ci"), max_examples=15)
settings.register_profile("nightly", max_examples=300, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")  # thousands of journals wait for no disk

_BEFORE = pytest.StashKey[ProcessState]()
_LISTS = {core.MARK: core.nodes, seers.MARK: seers.nodes}
"""By mark, what lists the tests that get it, where they are not marked nightly."""
_NIGHTLY_SECONDS = 900
_FRESH = settings.get_current_profile_name() == "nightly"


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def pytest_configure(config):
    """What tests start ends with this process; the package that brings modules of rounds is at hand.

    A run of the profile ``ci`` that excludes the seers has half of the examples: no planted bug needs its tests.

    Raises:
        UsageError: pip installed an earlier list of entry points, so rooms of contrib are not found; or
            PRIVSTATS_WITHOUT states that something is deleted which is here.
    """
    watch()
    if settings.get_current_profile_name() == "ci" and f"not {seers.MARK}" in config.option.markexpr:
        settings.load_profile("brief")
    declared = tomllib.loads((night.ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    installed = {(each.group, each.name, each.value) for each in distribution("privstats").entry_points}
    if {(group, *entry) for group, entries in declared.items() for entry in entries.items()} - installed:
        raise pytest.UsageError("pyproject.toml has other entry points than pip installed: pip install --no-deps -e .")
    bring_modules()
    if untrue := without.wrong():
        raise pytest.UsageError(untrue)
    without.give_stand_ins()


@cache
def _listed(expression):
    """By mark, the files and tests of each list that an expression of ``-m`` names; always those of the core."""
    named = {core.MARK, *re.findall(r"\w+", expression)}
    return {mark: listed() for mark, listed in _LISTS.items() if mark in named}


def _of_lists(expression):
    """Return the marks whose lists hold every test that ``-m`` chooses; none where it may choose others."""
    marks = set(expression.split(" or "))
    return marks if marks <= _LISTS.keys() else set()


def pytest_ignore_collect(collection_path, config):
    """Skip files outside the lists with ``-m core`` or ``-m seer``: reading them takes ten seconds a worker."""
    marks = _of_lists(config.option.markexpr)
    if marks and collection_path.name.startswith("test_") and collection_path.is_relative_to(night.ROOT):
        listed = frozenset().union(*(_listed(config.option.markexpr)[mark] for mark in marks))
        files = {node.partition("::")[0] for node in listed}
        return str(collection_path.relative_to(night.ROOT)) not in files or None
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    """Collect without the garbage collector, which takes two fifths of the time; all that is collected stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config, items):
    """What waits for other processes for minutes begins first, so that it does not end last.

    Raises:
        UsageError: a test is marked ci by another module than its own, where ``.ci/run`` would not find it; or the
            slices of the night lack a file with a test that is marked nightly, or have one without.
    """
    items.sort(key=lambda item: item.get_closest_marker("waits") is None)
    listed = _listed(config.option.markexpr)
    for item in items:
        for mark, nodes in listed.items():
            if core.is_listed(item.nodeid, nodes) and not item.get_closest_marker("nightly"):
                item.add_marker(mark)
        if item.get_closest_marker("nightly") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_NIGHTLY_SECONDS))
    for path in {item.path for item in items if item.get_closest_marker("ci")}:
        if "mark.ci" not in path.read_text():
            raise pytest.UsageError(f"{path} has tests that are marked ci, and does not say mark.ci: write it there")
    if night.SECONDS.exists() and not config.pluginmanager.has_plugin("tests.timed"):  # which writes the list
        inside = [item for item in items if item.path.is_relative_to(night.ROOT)]
        marked = [(str(item.path.relative_to(night.ROOT)), bool(item.get_closest_marker("nightly"))) for item in inside]
        whole = not _of_lists(config.option.markexpr) and night.ROOT / "tests" in (
            config.rootpath.joinpath(argument) for argument in config.args
        )
        if wrong := night.not_as_collected(marked, night.kept(), whole=whole):
            raise pytest.UsageError(wrong)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    """Note the working directory, environment and threads before the first fixture of a test."""
    item.stash[_BEFORE] = ProcessState.now()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    """Fail a test that leaves something behind in its process, and take it away for the next one.

    A test of the night does not fail: it starts large packages, which change the environment as they like.
    """
    result = yield
    before = item.stash[_BEFORE]
    lines = left_behind(before)
    if lines:
        before.restore()
    if lines and not item.get_closest_marker("nightly"):
        pytest.fail(f"the test left something behind: {'; '.join(lines)}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """A module that imports what is not installed is skipped as a whole."""
    report = yield
    if report.failed and (reason := why_skipped(report.call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"Skipped: {reason}")
    elif report.skipped and "tests/without.py" in report.longrepr[0]:  # a stand-in was used: the file is named
        report.longrepr = (str(collector.path), *report.longrepr[1:])
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """What a fixture draws is its own, whichever test asks for it first."""
    with skipped_where_lacking(), _drawn(f"{fixturedef.baseid}::{fixturedef.argname}[{request.param_index}]"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """What a test draws follows from its name."""
    with skipped_where_lacking(), _drawn(item.nodeid):
        return (yield)


def _drawn(name):
    return nullcontext() if _FRESH else named(name)


@pytest.fixture(autouse=True)
def state_folder(tmp_path_factory, monkeypatch):
    """The user's state folder is the test's own: what one test has counted locks no other out."""
    place = tmp_path_factory.getbasetemp() / "state" / secrets.token_hex(8)
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    return place


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """The loggers of privstats are in each test as before any command, which sets up a handler of its own."""
    _unconfigured()
    yield
    _unconfigured()


def _unconfigured() -> None:
    ours = logging.getLogger("privstats")
    ours.handlers, ours.propagate = [], True
    ours.setLevel(logging.NOTSET)


@pytest.fixture
def privstats(monkeypatch, capsys):
    """The command line in this process: ``privstats("plan", "check", "plan.toml", cwd=folder, code=0)``, which must end
    with that code and without a traceback; any end will do where none is given."""

    def command(*words: str, cwd: os.PathLike[str], code: int | None = None) -> Finished:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["privstats", *words])
        monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # pytest would be the program's name
        capsys.readouterr()
        ended = 0
        try:
            main()
        except SystemExit as stop:
            ended = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        done = Finished(ended, *capsys.readouterr())
        if ended != code and (reason := without.refused(done.stderr)):
            pytest.skip(reason)
        if code is not None:
            assert done.returncode == code, done.stdout + done.stderr
            assert "Traceback" not in done.stderr
        return done

    return command


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of releases that forecasts draw in this test: a command prints as much of three as of a hundred."""
    from privstats.inference import forecasts, prediction

    drawn = forecasts.forecast
    for module in (forecasts, prediction):
        monkeypatch.setattr(module, "forecast", lambda *plan, **given: drawn(*plan, **{**given, "draws": 3}))
    return 3
