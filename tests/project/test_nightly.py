"""The nightly script itself, with tiny counts: every part it has runs, whatever became of the one before."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.minima import lowest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "nightly"
FUZZING = "tests/secagg/interactive/test_fuzz.py::test_coverage_guided_fuzzing_finds_no_other_exception[night]"
SUITE = "the whole suite, with what is marked nightly"

ATHERIS = '''
"""In place of atheris, which has wheels for few platforms: the same calls, and random bytes."""
import contextlib, random, sys

def instrument_imports(include): return contextlib.nullcontext()

def Setup(words, one_input):
    global runs, target
    runs, target = next(int(word[6:]) for word in words if word.startswith("-runs=")), one_input

def Fuzz():
    bits = random.Random(2)
    for _ in range(runs): target(bits.randbytes(bits.randrange(600)))
    print(f"Done {runs} runs", file=sys.stderr)
'''


def night(*words: str, **counts: str) -> subprocess.CompletedProcess[str]:
    """The script with these counts; nothing is installed."""
    told = {name: value for name, value in os.environ.items() if not name.startswith("PRIVSTATS_")}
    told |= {"HYPOTHESIS_PROFILE": "dev", "PIP_NO_INDEX": "1", "PRIVSTATS_PYTHON": sys.executable, **counts}
    return subprocess.run([SCRIPT, *words], cwd=ROOT, env=told, capture_output=True, text=True, timeout=600)


def verdicts(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The last table: what became of each part."""
    rows = re.findall(r"^ +\d+ s  (\S.*?) {2,}(\S.*)$", done.stdout.rpartition("$ the night")[2], re.MULTILINE)
    return {title: verdict for verdict, title in rows}


pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the script needs bash")


@pytest.mark.ci
def test_the_night_fuzzes_where_atheris_is(tmp_path):
    (tmp_path / "atheris.py").write_text(ATHERIS)
    (tmp_path / "pip.py").write_text("raise SystemExit(1)")
    counts = {"PRIVSTATS_PARTS": "suite", "PRIVSTATS_INPUTS": "50"}
    done = night("-n", "0", FUZZING, **counts, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert verdicts(done) == {SUITE: "passed"}


@pytest.mark.nightly
def test_without_atheris_the_fuzzing_is_skipped_and_a_part_that_fails_stops_no_other(tmp_path):
    """The second part is asked for a bug that there is not."""
    (tmp_path / "atheris.py").write_text("raise ModuleNotFoundError('no wheel')")
    (tmp_path / "pip.py").write_text("raise SystemExit(1)")
    counts = {"PRIVSTATS_PARTS": "suite bugs papers", "PRIVSTATS_BUGS": "no such bug"}
    small = {"PRIVSTATS_PAPERS": "fedcgs", "PRIVSTATS_QUICK": "--quick --only uploads"}
    done = night("-n", "0", FUZZING, **counts, **small, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    for wanted in (".[nightly]", "atheris==2.3.0"):
        assert f"{wanted} cannot be installed here: what needs it is skipped" in done.stdout
    assert "1 skipped" in done.stdout
    bugs, paper = "deliberate bugs, and who sees them", "the tables of a paper: fedcgs"
    assert verdicts(done) == {SUITE: "passed", bugs: "FAILED with exit code 2", paper: "passed"}


def test_every_module_that_the_scripts_run_is_there():
    named = re.findall(
        r"-m \"?((?:tests|benchmarks)[\w.]+\w)", SCRIPT.read_text() + SCRIPT.with_name("minima").read_text()
    )
    assert {"tests.mutation", "tests.project.minima", "benchmarks.peers.compare"} <= set(named)
    assert all(importlib.util.find_spec(name) for name in named)


def test_every_dependency_says_its_lowest_version():
    found = lowest(ROOT)
    assert {"numpy", "cryptography", "hypothesis", "torch", "pytest"} <= set(found)


def test_a_dependency_without_a_lowest_version_is_named(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["numpy"]\n[project.optional-dependencies]\n')
    with pytest.raises(ValueError, match="'numpy' does not say its lowest version"):
        lowest(tmp_path)
