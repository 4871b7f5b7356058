"""Nobody outside a masking protocol's own room knows its steps, its graph or its thresholds.

Read from the syntax trees, so that words in docstrings and sentences are free: what counts is a literal that is just
such a word, an attribute of such a name, or an import of the room.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from privstats.secagg import Parameters
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.protocols import PROTOCOLS

ROOT = Path(__file__).parents[2]
STEP_NAMES = {"advertise", "share", "check", "mask", "agree", "unmask"}
GRAPHS = {"complete", "sparse", "robust"}  # not "auto": that is a plan's word for leaving the choice to the protocol
ATTRIBUTES = {"neighbours", "threshold", "complete", "quorum", "lying_server"}
WORDS = STEP_NAMES | GRAPHS | {"neighbours"}
ROOM = "privstats.secagg.interactive"
OF_THE_PROTOCOL = (
    "privstats/secagg/",
    "benchmarks/secagg/",  # measures the interactive protocol itself
    "threat_models/attacks/protocol.py",  # lies to the interactive protocol's own machines
    "threat_models/attacks/several_lists.py",  # likewise, on a random graph
    "threat_models/attacks/recorded.py",  # reads what they sent
    "threat_models/attacks/staged.py",  # sets those machines up
    "threat_models/attacks/protocol.py",  # sends them yesterday's messages, and damaged ones
)
ROBUST_ERRORS = (  # of a regression, which assume no variance of the outcome
    "benchmarks/inference/stretched.py",
    "privstats/cli/parts/questions.py",
    "privstats/inference/regression/score.py",
    "privstats/kinds/score.py",
    "privstats/review/certificate_checker.py",
)
OTHER_MEANINGS = {
    ("privstats/printable/budget.py", "share"),  # a column: the part of mu^2 that a statistic takes
    ("privstats/contrib/synthetic/course.py", "share"),  # a field: the part of mu^2 that a session takes
    ("benchmarks/inference/three_hospitals.py", "check"),  # the command
    ("privstats/engines/journal/helper.py", "check"),  # the step of the same name of the one upload's helpers
    ("benchmarks/startup.py", "check"),  # a command, privstats plan check
    ("privstats/review/certificate_checker.py", "complete"),  # it imports nothing of ours; theorem 6 is of that graph
    ("privstats/review/certificate_checker.py", "sparse"),  # it states the condition of a plan's promise itself
    ("privstats/inference/head_scores.py", "threshold"),  # of a score, from which on a record is flagged
    ("benchmarks/raw_table_tables.py", "share"),  # a column of results: the part of the records in a class
    ("benchmarks/raw_tables/widths.py", "share"),  # the same
    ("benchmarks/inference/robust_price.py", "share"),  # of the budget, for robust errors
    ("benchmarks/inference_tables.py", "share"),  # the same
    ("privstats/inference/cell_design.py", "complete"),  # records without a gap
    *((file, "robust") for file in ROBUST_ERRORS),
}
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("privstats", "threat_models", "benchmarks")
    for path in (ROOT / package).rglob("*.py")
    if not path.relative_to(ROOT).as_posix().startswith(OF_THE_PROTOCOL)
)


def leaks(source: str) -> Iterator[tuple[int, str]]:
    """Line and word of everything in ``source`` that only the interactive protocol's room may know."""
    if not any(word in source for word in (*WORDS, *ATTRIBUTES, "interactive")):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(word)) if word in WORDS:
                yield node.lineno, word
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                yield node.lineno, name
            case ast.ImportFrom(module=str(module)) if f"{module}.".startswith(f"{ROOM}."):
                yield node.lineno, module
            case ast.ImportFrom(module="privstats.secagg", names=names) if any(
                each.name == "interactive" for each in names
            ):
                yield node.lineno, ROOM
            case ast.Import(names=names) if any(f"{each.name}.".startswith(f"{ROOM}.") for each in names):
                yield node.lineno, ROOM


def test_the_words_are_the_protocols():
    assert set(STEPS) == STEP_NAMES == set(Parameters.steps)


def test_the_files_are_found():
    assert {
        "privstats/review/facts.py",
        "privstats/cli/plan.py",
        "threat_models/cli.py",
        "benchmarks/tables.py",
    } <= set(FILES)
    assert len(FILES) > 150


@pytest.mark.ci
def test_no_other_code_knows_the_interactive_protocol():
    found = [
        f"{file}:{line}: {word}"
        for file in FILES
        for line, word in leaks((ROOT / file).read_text("utf-8"))
        if (file, word) not in OTHER_MEANINGS
    ]
    assert not found, "ask plan.masking (privstats/secagg/machines.py) instead:\n" + "\n".join(found)


@pytest.mark.parametrize(("file", "word"), sorted(OTHER_MEANINGS))
def test_every_exception_is_still_needed(file, word):
    assert word in {each for _, each in leaks((ROOT / file).read_text("utf-8"))}


PLANTED = [
    'if plan.graph == "sparse": pass', 'graph: str = "complete"', 'def run(step="mask"): pass',
    'for step in ("advertise", "share"): pass', "dropouts = {'unmask': {1}}", 'match step:\n    case "agree": pass',
    "print(plan.masking.neighbours)", "print(plan.masking.threshold)", "if masking.complete: pass",
    "getattr(masking, 'neighbours')", "from privstats.secagg.interactive.state import STEPS",
    "from privstats.secagg.interactive import messages", "from privstats.secagg import interactive",
    "import privstats.secagg.interactive.state as table",
]  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_found(planted):
    assert list(leaks(planted))


@pytest.mark.parametrize(
    "harmless",
    ['"""Clients advertise, share and mask."""', 'graph: str = "auto"', "steps = plan.masking.steps", "mask = x > 0"],
)
def test_what_is_harmless_is_left_alone(harmless):
    assert not list(leaks(harmless))


def test_the_tests_of_the_protocol_reach_into_its_machines_at_one_place():
    """``inside.py`` lists what they may touch; 85 places did, each by itself."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / "tests" / "secagg").rglob("*.py"))
        if path.name != "inside.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and _is_private(node)
    ]
    assert not found, "\n".join(found)


def _is_private(node: ast.Attribute) -> bool:
    """A name with one underscore, of something other than the object itself or the operating system."""
    own = ast.unparse(node.value) in ("self", "super()", "cls", "os")
    return node.attr.startswith("_") and not node.attr.startswith("__") and not own


OF_A_PANEL = (
    "privstats/secagg/",
    "privstats/contrib/http/",  # as engines do
    "privstats/engines/",  # carry the panel's own messages
    "privstats/contrib/streams/local_stream.py",  # an engine too
    "privstats/plan/",  # checks that the row and the keys agree
    "threat_models/attacks/split.py",  # lies to the one upload's own machines
    "threat_models/attacks/protocol.py",  # likewise to the interactive protocol's
    "threat_models/attacks/recorded.py",  # reads what those sent
)


def guesses(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of everything in ``source`` that tells a protocol from a plan's panel, or by its name."""
    if "panel" not in source and "protocol" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                asked = [test]
            case ast.BoolOp(values=values):
                asked = values
            case ast.Compare(left=ast.Attribute(attr="protocol"), comparators=[ast.Constant(value=str())]):
                yield node.lineno, ast.unparse(node)
                continue
            case _:
                continue
        for each in asked:
            inner = each.operand if isinstance(each, ast.UnaryOp) else each
            if isinstance(inner, ast.Attribute) and inner.attr == "panel":
                yield node.lineno, ast.unparse(node.test if isinstance(node, ast.If | ast.IfExp) else node)


@pytest.mark.ci
def test_whether_a_protocol_has_a_panel_is_asked_of_its_row():
    """``protocol_of(plan.masking).has_panel``: a panel is a list of keys, and a third protocol may have one, too."""
    found = [
        f"{name}:{line}: {text}"
        for name in FILES
        if not name.startswith(OF_A_PANEL)
        for line, text in guesses((ROOT / name).read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "planted",
    [
        "if plan.panel: pass",
        "if not plan.panel: pass",
        "x = 1 if first.panel else 2",
        "seats = plan.panel or ('server',)",
        "if plan.panel and roster: pass",
        "x = plan.protocol == 'split'",
    ],
)
def test_a_planted_guess_is_found(planted):
    assert list(guesses(planted))


@pytest.mark.parametrize("harmless", ["if machine.panel is not None: pass", "keys = [x for x in plan.panel]"])
def test_what_is_no_guess_is_left_alone(harmless):
    assert not list(guesses(harmless))


CODE = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("privstats", "threat_models", "benchmarks", "tests")
    for path in (ROOT / package).rglob("*.py")
)


NAMES = frozenset(PROTOCOLS)


def lacking(source: str, names: frozenset[str] = NAMES) -> Iterator[tuple[int, str]]:
    """Line and missing names of every list, tuple, set or table in ``source`` that names two protocols and not all."""
    if sum(f'"{name}"' in source or f"'{name}'" in source for name in names) < 2:
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.List(elts=listed) | ast.Tuple(elts=listed) | ast.Set(elts=listed):
                found = set(map(first_word, listed)) & names
            case ast.Dict(keys=keys):
                found = {first_word(each) for each in keys if each} & names
            case _:
                continue
        if len(found) > 1 and found != names:
            yield node.lineno, ", ".join(sorted(names - found))


def first_word(node: ast.AST) -> object:
    """The constant that an entry is or begins with: ``"split"``, ``("split", 2)``, ``param("split", ...)``."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=[first, *_]) | ast.Call(args=[first, *_]):
            return first_word(first)
    return None


def test_what_lists_protocols_by_hand_lists_all_of_them():
    """Where it can, it goes through ``PROTOCOLS`` of ``privstats/secagg/protocols.py`` instead."""
    found = [f"{file}:{line}: {names}" for file in CODE for line, names in lacking((ROOT / file).read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "planted",
    [
        "for protocol in ('interactive', 'split'): pass",
        '{"interactive": 1, "split": 2, "other": 3}',
        "case(protocol=['interactive', param('split', marks=nightly)])",
        '[("interactive", 0), ("split", 2)]',
        '{"split", "interactive"}',
    ],
)
def test_a_planted_list_is_found_as_soon_as_there_is_a_third_protocol(planted):
    two = frozenset({"interactive"} | {"split"})
    assert [names for _, names in lacking(planted, two | {"third"})] == ["third"]
    assert not list(lacking(planted, two))
