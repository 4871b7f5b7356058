"""Every command that is printed to be run next is built in one place, from the options of the call, and runs."""

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import privstats as ps
from privstats.cli.main import COMMANDS
from privstats.cli.parts.group import command_of
from privstats.cli.parts.next_command import ONCE, next_command
from privstats.printable.command_line import command_line
from tests.made import promise

ROOT = Path(__file__).parents[2]
SOURCES = [path for room in ("privstats", "threat_models") for path in sorted((ROOT / room).rglob("*.py"))]
PRINTED = re.compile(r"(?:^|: )\s*(privstats [a-z-]+ .*)$", re.MULTILINE)
FILLED = {"COLUMN": "ill", "RECORDS": "400", "FILE": "ward 0.csv", "SHARE": "0.5", "UNIT": "record"}
FILLED |= {"ADJACENCY": "add-remove", "EPSILON": "1", "DELTA": "1e-6"}
"""Placeholders of printed commands, and what a reader types."""


def command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the first words name, and the other words."""
    own = command_of(COMMANDS[words[0]], words[0])
    if not isinstance(own, click.Group):
        return own, words[1:]
    inside = own.get_command(click.Context(own), words[1])
    assert inside is not None, words
    return inside, words[2:]


def read(line: str) -> tuple[click.Command, dict[str, Any]]:
    """Parse a command line as the shell and typer do."""
    program, *words = shlex.split(line)
    assert program == "privstats"
    found, rest = command([FILLED.get(word, word) for word in words])
    return found, found.make_context(found.name, rest).params


def by_flag(found: click.Command, values: dict[str, Any]) -> dict[str, Any]:
    return {flag: values[each.name] for each in found.params for flag in each.opts if isinstance(each, click.Option)}


def calls() -> Iterator[tuple[Path, ast.Call]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("next_command", "command_line"):
                yield path, node


def test_no_text_writes_a_command_with_values_by_itself() -> None:
    names = "|".join(COMMANDS)
    written = re.compile(rf"privstats (?:{names})(?: [\w./-]+)* \0")
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                text = "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
                assert not written.search(text), f"{path}:{node.lineno}: build it by command_line or next_command"


def test_every_call_names_a_command_and_its_options() -> None:
    found = 0
    for path, node in calls():
        words = [each.value for each in node.args if isinstance(each, ast.Constant)]
        if not words:
            continue
        own, _ = command(words)
        where = f"{path}:{node.lineno}"
        given = {each.arg for each in node.keywords} - {"without", "options", None}
        assert given <= {each.name for each in own.params}, where
        flags = {
            key.value
            for each in node.keywords
            if each.arg == "options" and isinstance(each.value, ast.Dict)
            for key in each.value.keys
            if isinstance(key, ast.Constant)
        }
        assert flags <= {flag for each in own.params for flag in each.opts}, where
        found += 1
    assert found > 20


WORDS = ["a", "two words", "it's", "$HOME", "-9", "a;b", "é", '"', "*"]


@pytest.mark.parametrize("value", WORDS)
def test_a_shell_reads_every_value_as_it_was(value: str) -> None:
    line = next_command("head", "predict", "m", "f", keep=[value, "b"], out=Path(value), lines=True)
    _, values = read(line)
    assert ([*values["keep"]], str(values["out"]), values["lines"]) == ([value, "b"], value, True)
    assert shlex.split(command_line("look", f"-{value}"))[-1] == f"./-{value}"


DIALECTS = [
    {"separator": separator, "decimal": decimal, "encoding": encoding}
    for separator, decimal, encoding in itertools.product((",", ";", "tab"), (".", ","), ("utf-8", "cp1252"))
    if separator != decimal
]


@pytest.fixture(scope="module")
def wards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two files in each form."""
    folder = tmp_path_factory.mktemp("wards")
    rng = np.random.default_rng(0)
    for place, form in enumerate(DIALECTS):
        here = folder / str(place)
        here.mkdir()
        for party in range(2):
            age, site = rng.uniform(20, 90, 300), rng.choice(["köln", "ulm"], 300)
            ill = np.where(rng.random(300) < np.where(age > 55, 0.8, 0.2), "yes", "no")
            separator = form["separator"].replace("tab", "\t")
            lines = [separator.join(("patient no", "age", "site", "ill"))]
            for row in zip(age, site, ill, strict=True):
                number = f"{row[0]:.1f}".replace(".", form["decimal"])
                lines.append(separator.join((f"p{len(lines)}", number, *row[1:])))
            (here / f"ward {party}.csv").write_text("\n".join(lines) + "\n", form["encoding"])
    return folder


COLUMNS = """
[[columns]]
name = "age"
kind = "numeric"
edges = [40.0, 60.0]
[[columns]]
name = "site"
kind = "categories"
values = ["köln", "ulm"]
[[columns]]
name = "ill"
kind = "categories"
values = ["no", "yes"]
"""
TERMS = shlex.split(
    "--clients 2 --vanish 0 --colluders 0 --max-records 2000 --model central --unit record --adjacency add-remove "
    "--epsilon 9 --delta 1e-6 --yes"
)


def printed(done: Any, words: list[str]) -> list[str]:
    """The commands that a call printed; each keeps the options that both commands have."""
    own, rest = command(words)
    context = own.make_context(own.name, list(rest))
    typed = {each.name for each in own.params if f"{context.get_parameter_source(each.name)}".endswith("COMMANDLINE")}
    given = {name: value for name, value in context.params.items() if name in typed and name not in ONCE}
    flags = {flag: given[each.name] for each in own.params for flag in each.opts if each.name in given}
    lines = PRINTED.findall(done.stdout + done.stderr)
    for line in lines:
        found, values = read(line)
        theirs = by_flag(found, values)
        shared = {flag for flag in flags.keys() & theirs.keys() if flag.startswith("--") and flag not in ("--head",)}
        assert {flag: str(theirs[flag]) for flag in shared} == {flag: str(flags[flag]) for flag in shared}, line
    return lines


@pytest.mark.parametrize("place", range(len(DIALECTS)))
def test_a_study_is_typed_as_it_is_printed(place: int, wards: Path, privstats: Any) -> None:
    here, form = wards / str(place), DIALECTS[place]
    how = [word for name, value in form.items() for word in (f"--{name}", value)]

    def run(*words: str, code: int = 0) -> list[str]:
        return printed(privstats(*words, cwd=here, code=code), list(words))

    def again(line: str, *more: str) -> list[str]:
        return run(*(FILLED.get(word, word) for word in shlex.split(line)[1:]), *more)

    files = ("ward 0.csv", "ward 1.csv")
    (typed,) = run("try", *files, *how, "--drop", "patient no", code=2)
    assert "--epsilon" in typed
    tried = again(typed, "--keep")
    assert [line.split()[1] for line in tried] == ["plan", "look", "look", "flower"]
    (here / "columns.toml").unlink()
    (init,) = run("plan", "init", "plan.toml", "--from", files[0], *how)
    (here / "columns.toml").write_text(COLUMNS, "utf-8")
    *_, check = again(init, *TERMS)
    again(check)
    for line in tried[1:3]:
        again(line)
    course = ("course", "init", "study.toml", "--plan", "plan.toml", "--rounds", "2", "--force")
    (check,) = run(*course)
    again(check)
    rehearsed = run("course", "rehearse", "study.toml", *files, "--target", "ill", "--out", "out", "--split", ".25")
    (predict,) = again(next(line for line in rehearsed if " head fit " in line), "--force")
    again(predict, *how, "--force")
    for line in rehearsed:
        if " score " in line:
            again(line)
    (table,) = (line for line in rehearsed if " table " in line)
    assert privstats(*shlex.split(table)[1:], cwd=here).returncode in (0, 1), "1: noise hides every row"


@pytest.mark.parametrize("words", ["plan init x.toml --example", "ledger open book.db", "ledger show book.db"])
def test_other_commands_print_what_can_be_typed(words: str, privstats: Any, tmp_path: Path) -> None:
    if "show" in words:
        ps.dp.Ledger.create(tmp_path / "book.db")
    assert printed(privstats(*words.split(), cwd=tmp_path, code=0), words.split())


@pytest.mark.parametrize("kind", ["init study.toml", "new folder"])
def test_a_stream_is_typed_as_it_is_printed(kind: str, privstats: Any, tmp_path: Path) -> None:
    schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 2, 90), privacy=promise("distributed"))
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    words = f"stream {kind} --plan plan.toml --epochs 2".split()
    assert len(printed(privstats(*words, cwd=tmp_path, code=0), words)) == 1


@pytest.mark.parametrize(("typed", "meant"), [("tabel", "table"), ("pln", "plan"), ("scores", "score")])
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(
    typed: str, meant: str, privstats: Any, tmp_path: Path
) -> None:
    assert f"'{meant}'" in privstats(typed, cwd=tmp_path, code=2).stderr


@pytest.mark.parametrize("words", ["-V", "version"])
def test_the_version_is_answered(words: str, privstats: Any, tmp_path: Path) -> None:
    assert privstats(words, cwd=tmp_path, code=0).stdout == privstats("--version", cwd=tmp_path, code=0).stdout


def test_help_is_a_command_too(privstats: Any, tmp_path: Path) -> None:
    for words in ((), ("plan",), ("plan", "check")):
        asked = privstats("help", *words, cwd=tmp_path, code=0).stdout
        assert asked == privstats(*words, "--help", cwd=tmp_path, code=0).stdout


def test_a_narrow_terminal_cuts_no_name(privstats: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in COMMANDS:
        own = command_of(COMMANDS[name], name)
        inside = own.list_commands(click.Context(own)) if isinstance(own, click.Group) else [""]
        for each in inside:
            words = [name, each] if each else [name]
            text = privstats(*words, "--help", cwd=tmp_path, code=0).stdout
            flags = {max(param.opts, key=len) for param in command(words)[0].params if isinstance(param, click.Option)}
            assert all(flag in text for flag in flags), words
            assert max(map(len, text.splitlines())) <= 80, words
