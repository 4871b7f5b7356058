"""A kind is one place: one more is planted in a copy, and seven files are all that it takes, from plan to page."""

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
    "tests/schema/samples.py": lambda text: (
        text
        + "\nfrom privstats.kinds.toy import ToySchema\n\nSCHEMAS += (ToySchema(4, 1.0),)\nPROMISED += SCHEMAS[-1:]\n"
        + 'TAKEN["toy"] = TAKEN["mean"]\n'
    ),
    "docs/sensitivity.md": lambda text: text.replace(
        "| `MeanSchema` | [A mean](#a-mean) |", "| `MeanSchema`, `ToySchema` | [A mean](#a-mean) |"
    ),
    "docs/plan.md": lambda text: text.replace('| `"mean"` |', '| `"mean"`, `"toy"` |'),
}
"""What a kind of its own name changes, by file; its rows are those of the mean."""


def planted(copy: Path) -> set[str]:
    """A copy of the library and its tests with one kind more; the files in which it differs."""
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    (copy / "docs").mkdir()
    for name in ("pyproject.toml", "README.md", "docs/sensitivity.md", "docs/plan.md"):
        shutil.copy(ROOT / name, copy / name)
    for name, changed in AFTER.items():
        path = copy / name
        before = path.read_text("utf-8") if path.exists() else ""
        path.write_text(changed(before), "utf-8")
    paths = [path for name in (*COPIED, "docs") for path in (copy / name).rglob("*.*")]
    files = {path.relative_to(copy).as_posix() for path in paths if path.suffix in {".py", ".toml", ".md"}}
    return {
        name for name in files if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


@pytest.mark.ci
def test_seven_files_take_a_kind_from_plan_to_page(tmp_path: Path) -> None:
    """Every stop of ``test_contract``: layout, noise, certificate, checker, search, simulation, file, pages, road."""
    touched = planted(tmp_path)
    assert touched == set(AFTER)
    walk = ["tests/schema/test_contract.py", "tests/schema/test_schema.py", "tests/schema/test_statistic.py"]
    walk += ["tests/schema/test_meanings.py", "tests/plan/test_persons.py", "tests/project/test_core.py"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-rA",
            "-k",
            "toy or every_kind_has or promise_is_searched",
            *walk,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"these seven are not enough: {sorted(touched)}\n{done.stdout[-4000:]}{done.stderr}"
    assert "toy-x" in done.stdout


def test_the_guide_names_these_seven() -> None:
    _, _, section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("### A kind of schema\n")
    named = re.findall(r"^\d\. `([\w/<>.]+)`", section.partition("\n### ")[0], re.MULTILINE)
    assert {name.replace("<kind>", "toy") for name in named} == {name.removeprefix("privstats/") for name in AFTER}
