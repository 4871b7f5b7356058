"""Every class and function of a public room has an example in its docstring, and what the example shows is so."""

import doctest
import importlib
import inspect
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import privstats as ps
from tests.without import room_of

_ROOMS = [
    "privstats", "privstats.course", "privstats.dp", "privstats.encoding",
    "privstats.contrib.personal",
    "privstats.engines.carriers", "privstats.engines.flower", "privstats.engines.journal",
    "privstats.engines.loopback", "privstats.errors",
    "privstats.estimates.filter_bank", "privstats.estimates.regression",
    "privstats.estimates.score", "privstats.estimates.softmax", "privstats.estimates.recipes",
    "privstats.estimates.denoise", "privstats.files.atomic", "privstats.files.envelope", "privstats.files.text",
    "privstats.files.signing", "privstats.heads", "privstats.inference", "privstats.moments", "privstats.printable",
    "privstats.plan", "privstats.python_values", "privstats.release", "privstats.review", "privstats.schema",
    "privstats.schema.modules",
    "privstats.schema.public_values", "privstats.secagg", "privstats.session", "privstats.testing.contracts",
    "privstats.transforms", "privstats.workflows.readers", "privstats.workflows.report", "privstats.workflows.score",
    "privstats.workflows.simulate", "privstats.workflows.suggest", "privstats.workflows.tables",
    "privstats.workflows.tables.reader", "privstats.contrib.sweep",
    "privstats.contrib.sweep.frame", "privstats.contrib.sweep.points", "privstats.contrib.sweep.rivals",
    "privstats.contrib.sweep.rivals.dp_sgd", "privstats.contrib.sweep.rivals.private_descent",
    "privstats.contrib.sweep.rivals.fedavg", "privstats.contrib.sweep.rivals.fedprox",
    "privstats.contrib.sweep.rivals.ensemble",
    "privstats.files.result_cache",
    "threat_models.audits.accountants", "threat_models.audits.zcdp",
]  # fmt: skip
ROOMS = [room for room in _ROOMS if not room_of(room)]
WITHOUT = {
    "privstats.course.DisjointRounds": "a protocol type: a course fulfils it, no caller makes one",
    "privstats.course.Course": "a protocol type: a course fulfils it, no caller makes one",
    "privstats.engines.carriers.BatchTransport": "a protocol type: a carrier may fulfil it, no caller makes one",
    "privstats.engines.carriers.Transport": "a protocol type: a carrier fulfils it, no caller makes one",
    "privstats.estimates.denoise.NoisySums": "a protocol type: class sums and a head's evidence fulfil it",
    "privstats.files.signing.Named": "a protocol type: an identity fulfils it",
    "privstats.files.signing.Signs": "a protocol type: an identity fulfils it",
    "privstats.workflows.report.render": "fills a template of the package, which page_of and write_page show",
    "privstats.workflows.simulate.Summed": "what a step of simulate returns, which streams take too",
    "privstats.workflows.simulate.measured": "a step of simulate, which streams take too",
    "privstats.workflows.simulate.summed": "a step of simulate, which streams take too",
    "privstats.errors.RestoredError": "needs a journal that was put back: tests/engines/test_journal_restored.py",
    "privstats.errors.SessionEndedError": "needs a session that has ended: tests/engines/test_journal_ends.py",
}
GIVEN = {"np": np, "os": os, "ps": ps}  # docs/reference/index.md says so
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def is_documented(value: object) -> bool:
    """Whether a public name has a docstring of its own: a class, a function, or a function that keeps its answers."""
    return inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value))


def public_names(room: str) -> dict[str, object]:
    """The classes and functions that a room lists or a module defines; constants and type aliases need no example."""
    module = importlib.import_module(room)
    names = getattr(module, "__all__", None) or [name for name in vars(module) if _is_own(module, name)]
    named = {f"{room}.{name}": getattr(module, name) for name in names}
    return {name: value for name, value in named.items() if is_documented(value)}


def _is_own(module: ModuleType, name: str) -> bool:
    return not name.startswith("_") and getattr(vars(module)[name], "__module__", "") == module.__name__


def example_of(name: str, value: object) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", dict(GIVEN), name, None, None)


EVERY = {name: value for room in ROOMS for name, value in public_names(room).items() if name not in WITHOUT}
NAMES = {name: value for name, value in EVERY.items() if name == next(n for n, v in EVERY.items() if v is value)}


def check(example: doctest.DocTest) -> None:
    """Run an example; its first difference fails the test, and an error that it does not show is raised as it is."""
    try:
        doctest.DebugRunner(optionflags=FLAGS, verbose=False).run(example)
    except doctest.DocTestFailure as failure:
        shown = f"{failure.example.source}expected: {failure.example.want}got: {failure.got}"
        pytest.fail(f"{example.name}, line {failure.example.lineno + 1}:\n{shown}", pytrace=False)
    except doctest.UnexpectedException as stopped:
        raise stopped.exc_info[1] from None


@pytest.mark.parametrize("name", NAMES)
def test_what_a_public_name_shows_is_so(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = example_of(name, NAMES[name])
    assert any(line.want for line in example.examples), f"{name} has no example with an outcome in its docstring"
    check(example)


PACKAGE = Path(ps.__file__).parent
OTHERS = sorted(
    ".".join(("privstats", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>>" in path.read_text("utf-8") and "nvflare" not in path.parts  # its package is installed nowhere here
)


@pytest.mark.parametrize("module", OTHERS)
def test_what_other_names_show_is_so(module, tmp_path, monkeypatch):
    loaded, shown = importlib.import_module(module), {inspect.getdoc(value) for value in NAMES.values()}
    for place, example in enumerate(doctest.DocTestFinder().find(loaded, module, extraglobs=GIVEN)):
        if example.examples and inspect.cleandoc(example.docstring) not in shown:
            (tmp_path / str(place)).mkdir()
            monkeypatch.chdir(tmp_path / str(place))
            check(example)


def doubled():
    """Twice a number.

    Example:
        >>> 2 + 2
        5
    """


def test_an_example_that_is_wrong_is_found():
    with pytest.raises(pytest.fail.Exception, match="expected: 5\ngot: 4"):
        check(example_of("doubled", doubled))


def test_no_exception_is_left_over():
    assert WITHOUT.keys() <= {name for room in ROOMS for name in public_names(room)}
