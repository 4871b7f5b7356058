"""Draws edits, finds the tests that run their lines, and runs those over a copy of the tree with the edit in it."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from privstats.randomness import seeded
from tests.mutation.drawn.edits import Edit, edits_of

ROOT = Path(__file__).parents[3]
_ROOMS = ("course", "dp", "encoding", "engines", "estimates", "files", "inference", "moments", "plan", "release.py",
          "schema", "secagg", "session", "transforms")  # fmt: skip
_COPIED = (
    "privstats", "threat_models", "tests", "benchmarks", "docs", "README.md", "pyproject.toml", "constraints.txt",
)  # fmt: skip
_FIRST = 100  # tests that are run before all others of a line
_SECONDS = 1200


@dataclass(frozen=True)
class Drawn:
    """An edit and the file that it is of, from the root of the repository."""

    file: str
    edit: Edit

    @property
    def told(self) -> str:
        """One line for a table."""
        return f"{self.file}:{self.edit.line}  {_short(self.edit.before)}  ->  {_short(self.edit.after)}"


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: ``killed``, ``lived``, ``equivalent`` or ``unreached``; and the number of its tests."""

    drawn: Drawn
    word: str
    tests: int


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def drawn(count: int, seed: int) -> list[Drawn]:
    """So many edits of the rooms that a promise or a sum rests on, each as likely as any other."""
    pool, rng = _pool(), seeded(seed)
    chosen: dict[Drawn, None] = {}
    while len(chosen) < min(count, len(pool)):
        chosen[pool[int.from_bytes(rng.bytes(8), "big") % len(pool)]] = None
    return list(chosen)


@cache
def _pool() -> list[Drawn]:
    files = [path for room in _ROOMS for path in _sources(ROOT / "privstats" / room)]
    return [Drawn(str(path.relative_to(ROOT)), edit) for path in files for edit in edits_of(path.read_text())]


def _sources(room: Path) -> list[Path]:
    return [room] if room.suffix else sorted(room.rglob("*.py"))


def equivalents() -> Mapping[tuple[str, str, str], str]:
    """Edits that change nothing which can be seen, with the reason: ``equivalent.toml``."""
    rows = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["mutant"]
    return {(row["file"], row["before"], row["after"]): row["why"] for row in rows}


def contexts_of(data: Path) -> dict[str, dict[int, list[str]]]:
    """Tests by file and line, of a run of the suite under ``--cov-context=test``."""
    from coverage import CoverageData  # the extra nightly brings it

    kept = CoverageData(str(data))
    kept.read()
    return {
        str(Path(file).relative_to(ROOT)): {
            line: sorted({name.split("|")[0] for name in names if name})
            for line, names in kept.contexts_by_lineno(file).items()
        }
        for file in kept.measured_files()
        if Path(file).is_relative_to(ROOT)
    }


def fates(mutants: list[Drawn], reached: Mapping[str, Mapping[int, list[str]]], workers: int) -> Iterator[Fate]:
    """What becomes of each, in order; ``workers`` copies of the tree are made for it."""
    same = equivalents()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        copies = [_copied(Path(folder) / str(each)) for each in range(workers)]

        def fate(mutant: Drawn) -> Fate:
            if (mutant.file, mutant.edit.before, mutant.edit.after) in same:
                return Fate(mutant, "equivalent", 0)
            tests = _tests(mutant, reached.get(mutant.file, {}))
            if not tests:
                return Fate(mutant, "unreached", 0)
            copy = copies.pop()
            try:
                return Fate(mutant, "killed" if _killed(mutant, tests, copy) else "lived", len(tests))
            finally:
                copies.append(copy)

        yield from pool.map(fate, mutants)


def _tests(mutant: Drawn, reached: Mapping[int, list[str]]) -> list[str]:
    """The tests of its lines; of a line that runs when the module is loaded, those of the whole file."""
    own = {name for line in range(mutant.edit.line, mutant.edit.last + 1) for name in reached.get(line, [])}
    return sorted(own or {name for names in reached.values() for name in names})


def _copied(place: Path) -> Path:
    place.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / name)
    return place


def _killed(mutant: Drawn, tests: list[str], copy: Path) -> bool:
    """Whether a test fails; a suite that no longer loads or ends is seen too."""
    with _planted(mutant, copy):
        if _fails(_spread(tests), copy):
            return True
        return len(tests) > _FIRST and _fails(tests, copy)


def _spread(tests: list[str]) -> list[str]:
    step = max(1, len(tests) // _FIRST)
    return tests[::step][:_FIRST]


@contextmanager
def _planted(mutant: Drawn, copy: Path) -> Iterator[None]:
    path = copy / mutant.file
    whole = path.read_text()
    path.write_text(mutant.edit.applied(whole))
    try:
        yield
    finally:
        path.write_text(whole)


def _fails(tests: list[str], copy: Path) -> bool:
    (copy / "chosen.txt").write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not nightly", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "--no-header", "--tb=no", "@chosen.txt"],
            cwd=copy,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            env={**os.environ, "PYTHONPATH": str(copy), "HYPOTHESIS_PROFILE": "ci", "PYTHONDONTWRITEBYTECODE": "1"},
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0
