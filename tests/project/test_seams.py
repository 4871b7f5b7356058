"""Nobody outside a masking protocol's own room knows its steps, its graph or its thresholds.

Read from the syntax trees, so that words in docstrings and sentences are free: what counts is a literal that is just
such a word, an attribute of such a name, or an import of the room.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from privstats.secagg import Parameters
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.protocols import PROTOCOLS
from tests.without import WHOLE

ROOT = Path(__file__).parents[2]
STEP_NAMES = {"advertise", "share", "check", "mask", "agree", "unmask"}
GRAPHS = {"complete", "sparse", "robust"}  # not "auto": that is a plan's word for leaving the choice to the protocol
WORDS = {"advertise", "mask", "agree", "unmask", "neighbours"}  # words that mean nothing else in this code
COMMON = STEP_NAMES | GRAPHS  # others mean something else too: they count next to a name that ends as follows
ASKS = re.compile("(?:.*_)?(graph|steps?|dropouts)")
ATTRIBUTES = {"neighbours", "quorum", "lying_server"}
OF_MASKING = {"threshold", "complete"}  # as above: they count as attributes of what is called as follows
MASKING = re.compile("(?:.*_)?(masking|parameters)")
ROOM = "privstats.secagg.interactive"
OF_THE_PROTOCOL = (
    "privstats/secagg/",
    "benchmarks/secagg/",  # measures the interactive protocol itself
    "threat_models/attacks/protocol.py",  # lies to the interactive protocol's machines, also with old messages
    "threat_models/attacks/several_lists.py",  # likewise, on a random graph
    "threat_models/attacks/searched_graphs.py",  # searches for one
    "threat_models/attacks/recorded.py",  # reads what they sent
    "threat_models/attacks/staged.py",  # sets those machines up
)
OWN_STATEMENT = "privstats/review/certificate_checker.py"  # imports nothing of ours, and states each condition itself
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("privstats", "threat_models", "benchmarks")
    for path in (ROOT / package).rglob("*.py")
    if not path.relative_to(ROOT).as_posix().startswith(OF_THE_PROTOCOL)
)


def leaks(source: str) -> Iterator[tuple[int, str]]:
    """Line and word of everything in ``source`` that only the interactive protocol's room may know."""
    if not any(word in source for word in (*WORDS, *COMMON, *ATTRIBUTES, *OF_MASKING, "interactive")):
        return
    for node in ast.walk(ast.parse(source)):
        for word in words_asked(node):
            yield getattr(node, "lineno", 0), word
        match node:
            case ast.Constant(value=str(word)) if word in WORDS:
                yield node.lineno, word
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                yield node.lineno, name
            case ast.Attribute(attr=name, value=owner) if name in OF_MASKING and MASKING.fullmatch(last_name(owner)):
                yield node.lineno, name
            case ast.ImportFrom(module=str(module)) if f"{module}.".startswith(f"{ROOM}."):
                yield node.lineno, module
            case ast.ImportFrom(module="privstats.secagg", names=names) if any(
                each.name == "interactive" for each in names
            ):
                yield node.lineno, ROOM
            case ast.Import(names=names) if any(f"{each.name}.".startswith(f"{ROOM}.") for each in names):
                yield node.lineno, ROOM


def words_asked(node: ast.AST) -> set[str]:
    """Words of a graph or a step that a node compares, assigns or passes under a name of one."""
    match node:
        case ast.Compare(left=left, comparators=others):
            names, values = [left, *others], [left, *others]
        case ast.Assign(targets=names, value=value):
            values = [value]
        case ast.AnnAssign(target=target, value=ast.AST() as value):
            names, values = [target], [value]
        case ast.keyword(arg=str(name), value=value):
            names, values = [ast.Name(name)], [value]
        case ast.arguments(args=listed, defaults=values, kwonlyargs=by_name, kw_defaults=further):
            names = [ast.Name(each.arg) for each in (*listed, *by_name)]
            values = [*values, *(each for each in further if each)]
        case ast.Match(subject=subject, cases=cases):
            names, values = [subject], [each.pattern for each in cases]
        case _:
            return set()
    if not any(ASKS.fullmatch(last_name(each)) for each in names):
        return set()
    found = [each.value for value in values for each in ast.walk(value) if isinstance(each, ast.Constant)]
    return {word for word in found if isinstance(word, str)} & COMMON


def last_name(node: ast.AST) -> str:
    """The name that an expression ends with: of ``plan.graph`` it is ``graph``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_the_words_are_the_protocols():
    assert set(STEPS) == STEP_NAMES == set(Parameters.steps)


@WHOLE
def test_the_files_are_found():
    assert {
        "privstats/review/plan_facts.py",
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
        if file != OWN_STATEMENT
    ]
    assert not found, "ask plan.masking (privstats/secagg/machines.py) instead:\n" + "\n".join(found)


PLANTED = [
    'if plan.graph == "sparse": pass', 'graph: str = "complete"', 'def run(step="mask"): pass',
    'for step in ("advertise", "share"): pass', "dropouts = {'unmask': {1}}", 'match step:\n    case "agree": pass',
    "print(plan.masking.neighbours)", "print(plan.masking.threshold)", "if masking.complete: pass",
    "getattr(masking, 'neighbours')", "from privstats.secagg.interactive.state import STEPS",
    "from privstats.secagg.interactive import messages", "from privstats.secagg import interactive",
    "import privstats.secagg.interactive.state as table", 'if step == "share": pass', "run(dropouts={'check': {1}})",
    'def run(graph="robust"): pass', 'def run(*, last_step="check"): pass', "plan = Plan(graph='sparse')",
    'match plan.graph:\n    case "complete": pass', 'graph = "complete" if small else "sparse"',
]  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_found(planted):
    assert list(leaks(planted))


@pytest.mark.parametrize(
    "harmless",
    [
        '"""Clients advertise, share and mask."""',
        'graph: str = "auto"',
        "steps = plan.masking.steps",
        "mask = x > 0",
        'row["share"]',
        'errors: str = "robust"',
        "score.threshold",
        'run("plan", "check", "plan.toml")',
    ],
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
