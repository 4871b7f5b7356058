"""pip installs the packages of strangers, and the tests' own copies are as pip leaves them."""

import os
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.brought import PACKAGES, install
from tests.lacking import needs

FOLDER = Path(__file__).parent / "brought"
LONGEST = 40
EXTENSIONS = {
    "an attack": "aligned/aligned_sum.py",
    "a carrier between machines": "posted/post_office.py",
    "a head": "nearest/nearest_centroid/head.py",
    "a kind whose bound is proved here": "stranger/stranger_rows.py",
    "a kind that states its bound": "stranger/stranger_kind.py",
    "a reader of tables": "totals/totals_reader.py",
}
LOADED = """
from importlib.metadata import entry_points
from sys import argv
found = [point for group in entry_points().groups for point in entry_points(group=group)]
every = {(point.group, point.name): point for point in found if point.dist.name in argv[1:]}
for point in every.values():
    point.load()
print(*sorted(f"{point.dist.name} {group} {name}" for (group, name), point in every.items()), sep="\\n")
"""


def files(site: Path) -> dict[str, list[str]]:
    """The modules of each distribution in a folder of packages."""
    return {
        each.metadata["Name"]: sorted(str(path) for path in each.files or () if path.suffix == ".py")
        for each in distributions(path=[str(site)])
    }


@pytest.mark.ci
def test_pip_installs_each_package_as_the_tests_do(tmp_path: Path) -> None:
    needs("hatchling")
    built, copied = tmp_path / "built", tmp_path / "copied"
    folders = [str(FOLDER / name) for name in PACKAGES]
    flags = ["--quiet", "--no-deps", "--no-compile", "--no-build-isolation", "--no-index", "--target", str(built)]
    subprocess.run([sys.executable, "-m", "pip", "install", *flags, *folders], check=True)
    for name in PACKAGES:
        install(name, copied / name)
    assert files(built) == {key: row for name in PACKAGES for key, row in files(copied / name).items()}
    names = [project["name"] for project in PACKAGES.values()]
    code = f"import sys; sys.path.insert(0, {str(built)!r})\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == sorted(
        f"{project['name']} {group} {name}"
        for project in PACKAGES.values()
        for group, rows in project.get("entry-points", {}).items()
        for name in rows
    )


def test_a_page_shows_a_package_as_it_is() -> None:
    page = (FOLDER.parents[1] / "docs" / "how_to_add.md").read_text("utf-8")
    shown = re.findall(r"^<!-- brought: (\S+) -->\n```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown
    assert [(name, text) for name, text in shown if text != (FOLDER / name).read_text("utf-8")] == []


@pytest.mark.parametrize("what", EXTENSIONS)
def test_an_extension_takes_fewer_lines_than_forty(what: str) -> None:
    lines = (FOLDER / EXTENSIONS[what]).read_text("utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) < LONGEST


RAN = re.compile(r"^<!-- run: totals -->\n```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^<!-- printed: totals -->\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = """
import sys
from privstats.cli import main
sys.argv = ["privstats", "table", "r.release", "--reader", "totals"]
main()
"""


def test_a_page_s_code_on_a_reader_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = (FOLDER.parents[1] / "docs" / "how_to_add.md").read_text("utf-8")
    code = "\n".join([*RAN.findall(page), COMMAND])
    path = os.pathsep.join([str(install("totals", tmp_path)), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "120"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (shown,) = PRINTED.findall(page)
    assert [line.rstrip() for line in done.stdout.splitlines()] == shown.splitlines()
