"""The night in slices: each file with a test that is marked nightly is in exactly one, and 24 commits run all.

    python -m tests.night                the files of this commit's slice, a line each
    python -m tests.night --number 3     those of another slice
    python -m tests.night --all          every slice, with the processor seconds of its files

``.ci/night_seconds.json`` keeps the files with the processor seconds of each, by which the slices are balanced. Tests
get the mark from helpers too, so no search through texts finds them all: ``conftest`` holds the list against what
pytest collects. ``python -m pytest -p tests.timed -m nightly FILE`` measures a file, and writes its seconds there.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = ROOT / ".ci" / "night_seconds.json"
SLICES = 24
COVERAGE_SECONDS = 250
"""Processor seconds that slice 0 is shorter than the others: ``.ci/run`` measures coverage in its commits."""


def kept() -> dict[str, int]:
    """The processor seconds of each file of the night."""
    seconds: dict[str, int] = json.loads(SECONDS.read_text("utf-8"))
    return seconds


def keep(measured: Mapping[str, float]) -> None:
    """Write down what was measured of some files."""
    rounded = {file: max(1, round(seconds)) for file, seconds in measured.items()}
    SECONDS.write_text(json.dumps(dict(sorted({**kept(), **rounded}.items())), indent=0) + "\n", "utf-8")


def slices(seconds: Mapping[str, int], count: int = SLICES) -> list[list[str]]:
    """The files, dealt out: the longest first, each to the slice that has least. The first begins with coverage."""
    dealt: list[list[str]] = [[] for _ in range(count)]
    spent = [COVERAGE_SECONDS, *[0] * (count - 1)]
    for file in sorted(seconds, key=lambda file: (-seconds[file], file)):
        least = spent.index(min(spent))
        dealt[least].append(file)
        spent[least] += seconds[file]
    return dealt


def number_of_commit() -> int:
    """How many commits led here, so that the next has the next slice; PRIVSTATS_SLICE says another number. What was
    merged at once counts as one."""
    given = os.environ.get("PRIVSTATS_SLICE")
    asked = ["git", "rev-list", "--count", "--first-parent", "HEAD"]
    return int(given or subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def not_as_collected(tests: Sequence[tuple[str, bool]], listed: Iterable[str], *, whole: bool) -> str:
    """What is wrong with the list of files; empty where nothing is.

    Args:
        tests: the file of each test that pytest has collected, and whether it is marked nightly.
        listed: the files of the night.
        whole: whether all tests were collected.
    """
    by_night = {file for file, marked in tests if marked}
    if missing := sorted(by_night - {*listed}):
        return f"{', '.join(missing)}: marked nightly, and in no slice of the night; `-p tests.timed` writes it there"
    if whole and (gone := sorted({*listed} & {file for file, _ in tests} - by_night)):
        return f"{', '.join(gone)}: in a slice of the night, and marked nightly no more; take it out of {SECONDS.name}"
    return ""


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.night")
    parser.add_argument("--number", type=int, help="of a slice, in place of this commit's")
    parser.add_argument("--all", action="store_true", help="every slice with its processor seconds")
    options = parser.parse_args(words)
    seconds = kept()
    dealt = slices(seconds)
    if options.all:
        for number, files in enumerate(dealt):
            print(f"{number}: {sum(seconds[each] for each in files)} s", *files, sep="\n   ")
    else:
        number = number_of_commit() if options.number is None else options.number
        print(*dealt[number % SLICES], sep="\n")


if __name__ == "__main__":
    main()
