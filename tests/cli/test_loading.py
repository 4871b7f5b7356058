"""What the command line loads, in modules and not in seconds: these are the same on every machine.

Help shows what commands are called and take, so it waits for nothing that computes.
"""

import json
import subprocess
import sys

import pytest

from privstats.cli.main import COMMANDS
from privstats.plug_ins import announced

COMPUTES = {"numpy", "scipy", "sklearn", "cryptography", "safetensors", "torch", "matplotlib", "pandas", "flwr", "dask"}
BUILD_EVERY_COMMAND = """
import typer.main
from privstats.cli.main import app
def built(group):
    for command in map(lambda name: group.get_command(None, name), group.list_commands(None)):
        yield command
        yield from built(command) if hasattr(command, "list_commands") else ()
assert len(list(built(typer.main.get_command(app)))) > 40
"""
RUN = """
import sys
from privstats.cli import main
sys.argv = {!r}
try: main()
except SystemExit as end: assert not end.code
"""
NAMES = "import json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"


def loaded(program: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds at a program's end."""
    done = subprocess.run([sys.executable, "-c", f"{program}\n{NAMES}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_of_every_command_is_built_without_what_computes() -> None:
    modules = loaded(BUILD_EVERY_COMMAND)
    brought = {entry.module for entry in announced(COMMANDS.group)}
    assert {"privstats.cli.try_", "privstats.cli.plan"} | brought <= modules
    assert not {name.partition(".")[0] for name in modules} & COMPUTES, (
        "import what does a command's work in its function, and public names as `import privstats as ps`"
    )


@pytest.mark.parametrize("words", [("--help",), ("plan", "--help"), ("plan", "check", "--help")])
def test_help_is_printed_without_what_computes_or_draws_boxes(words: tuple[str, ...]):
    modules = loaded(RUN.format(["privstats", *words]))
    assert not {"typer.rich_utils", "rich.console"} & modules, (
        "print by privstats.cli.parts.terminal, which loads rich when it prints"
    )
    assert not {name.partition(".")[0] for name in modules} & COMPUTES
    assert not {name for name in modules if name.startswith("privstats.engines")}


@pytest.mark.parametrize("chosen", [None, "26"])
def test_idle_threads_of_blas_sleep_soon_unless_the_environment_says_otherwise(chosen, monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    if chosen:
        monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", chosen)
    seen = "import os; assert os.environ['OPENBLAS_THREAD_TIMEOUT'] == '{}'; assert 'numpy' not in sys.modules"
    loaded(f"{RUN.format(['privstats', '--version'])}\n{seen.format(chosen or 16)}")
