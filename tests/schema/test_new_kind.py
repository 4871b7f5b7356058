"""A kind is one place: one more is planted in a copy, and five files are all that it takes, from plan to page."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEAN = (ROOT / "privstats/kinds/mean.py").read_text("utf-8")
COPIED = ("privstats", "threat_models", "tests")

AFTER: dict[str, Callable[[str], str]] = {
    "privstats/kinds/toy.py": lambda _: MEAN.replace('"mean"', '"toy"').replace("Mean", "Toy"),
    "privstats/kinds/registry.py": lambda text: text.replace(
        '        "mean":', '        "toy": "privstats.kinds.toy:ToySchema",\n        "mean":'
    ),
    "privstats/review/certificate_checker.py": lambda text: text + '\nKINDS["toy"] = KINDS["mean"]\n',
    "threat_models/audits/kinds.py": lambda text: text + '\nAUDIT_KINDS["toy"] = AUDIT_KINDS["mean"]\n',
    "docs/proofs/sensitivity.md": lambda text: text.replace("| `MeanSchema` |", "| `MeanSchema`, `ToySchema` |"),
}
"""What a kind of its own name changes, by file; its rows are those of the mean."""


WALK = (
    "tests/schema/test_contract.py",
    "tests/schema/test_schema.py",
    "tests/schema/test_statistic.py",
    "tests/schema/test_meanings.py",
    "tests/plan/test_persons.py",
    "tests/project/test_core.py",
)


SEEN_IN: dict[str, tuple[str, ...]] = {
    "privstats/kinds/toy.py": WALK[3:4],
    "privstats/kinds/registry.py": WALK[3:4],
    "privstats/review/certificate_checker.py": WALK[:1],
    "threat_models/audits/kinds.py": WALK[:1],
    "docs/proofs/sensitivity.md": (WALK[3], WALK[5]),
}
"""The files of ``WALK`` that see a kind without this file."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the library and its tests, for all cases of a process."""
    place = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copytree(ROOT / "docs" / "proofs", place / "docs" / "proofs")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, place / name)
    return place


def plant(copy: Path, omitted: str = "") -> None:
    """Write one kind more into a copy, without one of its files."""
    for name, changed in AFTER.items():
        before = (ROOT / name).read_text("utf-8") if (ROOT / name).exists() else ""
        (copy / name).write_text(before if name == omitted else changed(before), "utf-8")
    if omitted and not (ROOT / omitted).exists():
        (copy / omitted).unlink()


def touched(copy: Path) -> set[str]:
    """Return the files in which a copy differs."""
    paths = [path for name in (*COPIED, "docs") for path in (copy / name).rglob("*.*")]
    files = {path.relative_to(copy).as_posix() for path in paths if path.suffix in {".py", ".toml", ".md"}}
    return {
        name for name in files if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


def walked(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy that walk kinds, and the toy among them."""
    chosen = ("-m", "ci or not ci", "-k", "toy or every_kind_has or promise_is_searched")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-rA", *chosen, *words],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.ci
def test_five_files_take_a_kind_from_plan_to_page(copy: Path) -> None:
    """Every stop of ``test_contract``: layout, noise, certificate, checker, search, simulation, file, pages, road."""
    plant(copy)
    assert touched(copy) == set(AFTER)
    done = walked(copy, *WALK)
    assert done.returncode == 0, f"these five are not enough: {sorted(AFTER)}\n{done.stdout[-4000:]}{done.stderr}"
    assert "toy-x" in done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("omitted", AFTER)
def test_a_kind_that_lacks_one_of_these_files_is_seen(omitted: str, copy: Path) -> None:
    """Without its line in the registry it is no kind: no test walks it, and no plan names it."""
    plant(copy, omitted)
    done = walked(copy, "-x", *SEEN_IN[omitted])
    assert done.returncode != 0 or "toy-x" not in done.stdout, done.stdout[-2000:]
    assert ("toy-x" in done.stdout) == (omitted not in ("privstats/kinds/toy.py", "privstats/kinds/registry.py"))


def test_the_guide_names_these_five() -> None:
    _, _, section = (ROOT / "docs" / "how_to_add.md").read_text("utf-8").partition("## A kind of schema\n")
    named = re.findall(r"^\d\. `([\w/<>.]+)`", section.partition("\n## ")[0], re.MULTILINE)
    assert {name.replace("<kind>", "toy") for name in named} == {name.removeprefix("privstats/") for name in AFTER}
