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
    "threat_models/audits/kinds.py": lambda text: text + '\nKINDS["toy"] = KINDS["mean"]\n',
    "docs/sensitivity.md": lambda text: text.replace(
        "| `MeanSchema` | [A mean](#a-mean) |", "| `MeanSchema`, `ToySchema` | [A mean](#a-mean) |"
    ),
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


def planted(copy: Path, omitted: str = "") -> set[str]:
    """A copy of the library and its tests with one kind more; the files in which it differs."""
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    (copy / "docs").mkdir()
    for name in ("pyproject.toml", "README.md", "docs/sensitivity.md"):
        shutil.copy(ROOT / name, copy / name)
    for name, changed in AFTER.items():
        if name != omitted:
            path = copy / name
            before = path.read_text("utf-8") if path.exists() else ""
            path.write_text(changed(before), "utf-8")
    paths = [path for name in (*COPIED, "docs") for path in (copy / name).rglob("*.*")]
    files = {path.relative_to(copy).as_posix() for path in paths if path.suffix in {".py", ".toml", ".md"}}
    return {
        name for name in files if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


def walked(copy: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Every stop of ``test_contract``: layout, noise, certificate, checker, search, simulation, file, pages, road."""
    chosen = ("-m", "ci or not ci", "-k", "toy or every_kind_has or promise_is_searched")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-rA", *flags, *chosen, *WALK],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.ci
def test_five_files_take_a_kind_from_plan_to_page(tmp_path: Path) -> None:
    touched = planted(tmp_path)
    assert touched == set(AFTER)
    done = walked(tmp_path)
    assert done.returncode == 0, f"these five are not enough: {sorted(touched)}\n{done.stdout[-4000:]}{done.stderr}"
    assert "toy-x" in done.stdout


@pytest.mark.ci
@pytest.mark.parametrize("omitted", AFTER)
def test_a_kind_that_lacks_one_of_these_files_is_seen(omitted: str, tmp_path: Path) -> None:
    """Without its line in the registry it is no kind: no test walks it, and no plan names it."""
    planted(tmp_path, omitted)
    done = walked(tmp_path, "-x")
    assert done.returncode != 0 or "toy-x" not in done.stdout, done.stdout[-2000:]
    assert ("toy-x" in done.stdout) == (omitted not in ("privstats/kinds/toy.py", "privstats/kinds/registry.py"))


def test_the_guide_names_these_five() -> None:
    _, _, section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("### A kind of schema\n")
    named = re.findall(r"^\d\. `([\w/<>.]+)`", section.partition("\n### ")[0], re.MULTILINE)
    assert {name.replace("<kind>", "toy") for name in named} == {name.removeprefix("privstats/") for name in AFTER}
