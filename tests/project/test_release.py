"""A release: one version everywhere, a wheel of what is listed, and workflows that say what the project says."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from tests.lacking import needs
from tests.without import WHOLE

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
FORGE = ROOT / ".github"
WORKFLOWS = sorted(path.name for path in (FORGE / "workflows").glob("*.yml"))
FORMS = sorted(path.name for path in (FORGE / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
SHIPPED = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
DATA = {
    "privstats/py.typed",
    "privstats/cli/plan.toml",
    "privstats/engines/flower/template/app/pyproject.toml",
    "privstats/contrib/http/manifest.schema.json",
    *(f"privstats/workflows/rehearsal/{name}" for name in ("rehearsal.html", "north.csv", "south.csv")),
    *(f"privstats/workflows/report/{name}.html" for name in ("ethics", "layout", "page", "parts", "privacy_report")),
    "privstats/contrib/evidence/evidence.html",
    "privstats/contrib/synthetic/page.html",
    "threat_models/page.html",
    "threat_models/py.typed",
}
"""The files of the packages that are not Python: a new one is listed here before a wheel may hold it."""
_DIGEST_OF = {name: f"$(find {name} -type f | sort | xargs sha256sum | base64 -w0)" for name in ("dist", "sbom")}
DIGESTS = [f'echo "sha256={digest}" >> "$GITHUB_OUTPUT"' for digest in _DIGEST_OF.values()]
CHECKS = [f'test -n "$SHA256" && test "{digest}" = "$SHA256"' for digest in _DIGEST_OF.values()]


def read(path: Path) -> Any:
    return pytest.importorskip("yaml").safe_load(path.read_text("utf-8"))


def steps_of(name: str) -> Iterator[dict[str, Any]]:
    for job in read(FORGE / "workflows" / name)["jobs"].values():
        yield from job["steps"]


def ci(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PRIVSTATS_PYTHON": sys.executable, **environment}
    return subprocess.run([ROOT / ".ci" / words[0], *words[1:]], env=given, capture_output=True, text=True)


def test_the_version_is_one() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    sections = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert sections[0] == "Unreleased"
    version, _, date = sections[1].partition(" - ")
    assert version == ps.__version__
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation
    npm = re.sub(r"(a|b|rc)(\d+)$", r"-\1.\2", version)  # semantic versioning as npm writes it
    assert json.loads((ROOT / "clients" / "javascript" / "package.json").read_text("utf-8"))["version"] == npm
    assert f"Software: privstats {version}." in (ROOT / "docs" / "effects.md").read_text("utf-8")


def test_a_changelog_states_each_line_once() -> None:
    lines = [line for line in CHANGELOG.splitlines() if line.startswith("- ")]
    assert len(lines) == len(set(lines)) > 40


@WHOLE
def test_the_list_of_data_files_is_complete() -> None:
    """This needs no build tool, so a list that lacks a file fails wherever the tests run."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *WHEEL["packages"]]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    assert {name for name in names if name and not name.endswith(".py") and (ROOT / name).exists()} == DATA
    assert all((ROOT / name).is_file() for name in WHEEL["force-include"])


def test_git_tracks_nothing_at_the_top_level_that_neither_ships_nor_serves_development() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    development = {".ci", ".github", ".gitignore", ".pre-commit-config.yaml", "LICENSE", "pyproject.toml"}
    assert {name.partition("/")[0] for name in listed.split("\0") if name} == {*SHIPPED, *development}


def test_a_wheel_holds_the_packages_and_what_they_read_and_nothing_else(tmp_path, monkeypatch) -> None:
    builders = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    (wheel,) = builders.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        entries = packed.read(f"privstats-{ps.__version__}.dist-info/entry_points.txt").decode()
    source = {path.relative_to(ROOT).as_posix() for room in WHEEL["packages"] for path in ROOT.glob(f"{room}/**/*.py")}
    about = {name for name in names if name.startswith(f"privstats-{ps.__version__}.dist-info/")}
    assert {name.partition("/")[2] for name in about} == {
        *("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "licenses/LICENSES/MIT.txt")
    }
    assert names - about - source == DATA | set(WHEEL["force-include"].values())
    assert source <= names
    assert "privstats = privstats.cli:main" in entries


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("v0.0.1", f"the tag is v0.0.1 and privstats/version.py says {ps.__version__}: make them one"),
        ("", "give the tag"),
    ],
)
def test_a_release_under_another_tag_is_refused(tag: str, words: str) -> None:
    done = ci("release", tag)
    assert done.returncode == 1
    assert words in done.stderr


def brought(names: list[str]) -> set[str]:
    """Distributions that these bring, with themselves, as they are installed here."""
    needed = (line for name in names for line in metadata.requires(name) or () if ";" not in line)
    more = [re.split(r"[^\w.-]", line)[0] for line in needed]
    return {*names, *(brought(more) if more else ())}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The interpreter of an environment that has what the wheel brings, by its metadata alone: no index is asked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    for name in brought([re.split("[>=]", line)[0] for line in PROJECT["project"]["dependencies"]]):
        about = Path(str(metadata.distribution(name).locate_file(""))) / next(
            str(file.parent) for file in metadata.files(name) or () if file.name == "METADATA"
        )
        shutil.copytree(about, site / about.name)
    return tmp_path / "venv" / "bin" / "python"


@pytest.mark.nightly
def test_a_bill_of_materials_is_valid_and_of_this_version(tmp_path: Path, installed: Path) -> None:
    needs("cyclonedx_py")
    out = tmp_path / "sbom" / "privstats.cdx.json"
    done = ci("sbom", f"dist/privstats-{ps.__version__}-py3-none-any.whl", str(out), str(installed))
    assert done.returncode == 0, done.stderr
    bill = json.loads(out.read_text("utf-8"))
    subject = bill["metadata"]["component"]
    assert (bill["bomFormat"], subject["name"], subject["version"]) == ("CycloneDX", "privstats", ps.__version__)
    (direct,) = [set(each["dependsOn"]) for each in bill["dependencies"] if each["ref"] == subject["bom-ref"]]
    named = {re.split("[>=]", line)[0].replace("-", "_") for line in PROJECT["project"]["dependencies"]}
    assert {name.partition("==")[0].replace("-", "_") for name in direct} == named
    assert direct <= {each["bom-ref"] for each in bill["components"]}


@pytest.mark.nightly
def test_the_pack_for_readers_has_every_part_and_the_digest_of_each(tmp_path: Path) -> None:
    needs("sphinx")
    needs("cyclonedx_py")
    needs("build")
    done = ci("pack", str(tmp_path / "pack"))
    assert done.returncode == 0, done.stderr
    pack = tmp_path / "pack"
    listed = dict(reversed(line.split("  ./")) for line in (pack / "MANIFEST.sha256").read_text("utf-8").splitlines())
    assert {str(path.relative_to(pack)) for path in pack.rglob("*") if path.is_file()} == {*listed, "MANIFEST.sha256"}
    assert all(sha256((pack / name).read_bytes()).hexdigest() == digest for name, digest in listed.items())
    names = {"keys.md", "open_questions.md", "deliberate_bugs.md", "privstats.cdx.json", "specification/index.html"}
    assert names <= listed.keys()
    (identity,) = re.findall(r"^\| identity \|.*$", (pack / "keys.md").read_text("utf-8"), re.MULTILINE)
    assert "Ed25519" in identity
    assert (pack / "deliberate_bugs.md").read_text("utf-8").count("\n| ") > 50
    counts = dict(line.split(",") for line in (pack / "tests.csv").read_text("utf-8").splitlines()[1:])
    assert int(counts["tests/secagg"]) > 100
    assert "tests/secagg/vectors/uploads.json" in {name.removeprefix("vectors/") for name in listed}
    assert ci("build", str(tmp_path / "dist")).returncode == 0, "as .ci/release does"
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert listed[wheel.name] == sha256(wheel.read_bytes()).hexdigest()
    again = ci("pack", str(pack))
    assert (again.returncode, again.stderr) == (1, f"{pack} exists: give a folder that does not\n")


@pytest.mark.ci
def test_every_file_has_a_licence() -> None:
    needs("reuse")
    done = subprocess.run([sys.executable, "-m", "reuse", "lint"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_licence_is_there_once_for_people_and_once_for_tools() -> None:
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "LICENSES" / "Apache-2.0.txt").read_bytes()
    whole, *parts = tomllib.loads((ROOT / "REUSE.toml").read_text("utf-8"))["annotations"]
    assert (whole["path"], whole["SPDX-License-Identifier"]) == ("**", "Apache-2.0")
    named = {each for part in parts for each in part["SPDX-License-Identifier"].split(" AND ")}
    assert named == set(PROJECT["project"]["license"].split(" AND ")) == {"Apache-2.0", "MIT"}
    assert {path.stem for path in (ROOT / "LICENSES").iterdir()} == named
    assert all((ROOT / part["path"]).exists() for part in parts)


def test_every_supported_python_is_tested() -> None:
    named = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if "Python :: 3." in line]
    assert read(FORGE / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == named


def test_the_night_has_every_part() -> None:
    (parts,) = re.findall(r"PRIVSTATS_PARTS:-([a-z ]+)\}", (ROOT / ".ci" / "nightly").read_text("utf-8"))
    assert read(FORGE / "workflows" / "nightly.yml")["jobs"]["night"]["strategy"]["matrix"]["part"] == parts.split()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_workflow_runs_is_there(name: str) -> None:
    pinned = (ROOT / "constraints.txt").read_text("utf-8").lower()
    for command in (step["run"] for step in steps_of(name) if "run" in step):
        words = command.split()
        if words[0].startswith(".ci/"):
            assert os.access(ROOT / words[0], os.X_OK), command
        elif "install" in words:
            assert words[words.index("-c") + 1] == "constraints.txt"
            for package in words[words.index("constraints.txt") + 1 :]:
                assert package in ("-e", '".[nightly]"') or f"\n{package}==" in pinned, command
        elif command not in (*DIGESTS, *CHECKS):
            assert command in ("python -m venv .venv", "reuse lint"), (
                f"{name} runs {command!r}: a file of .ci is tried here"
            )


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_runs_code_that_is_pinned_and_may_do_no_more_than_it_must(name: str) -> None:
    text = (FORGE / "workflows" / name).read_text("utf-8")
    used = [line.partition("uses:")[2].strip() for line in text.splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
    flow = read(FORGE / "workflows" / name)
    assert flow["permissions"] == {"contents": "read"}
    assert all(0 < job["timeout-minutes"] <= 360 for job in flow["jobs"].values())
    kept = [step["with"]["persist-credentials"] for step in steps_of(name) if "checkout@" in step.get("uses", "")]
    assert not any(kept)
    assert "secrets." not in text


def test_only_what_publishes_may_sign() -> None:
    signs = {
        (name, job)
        for name in WORKFLOWS
        for job, said in read(FORGE / "workflows" / name)["jobs"].items()
        if "write" in said.get("permissions", {}).values()
    }
    assert signs == {("release.yml", "attest"), ("release.yml", "publish")}
    jobs = read(FORGE / "workflows" / "release.yml")["jobs"]
    assert (jobs["publish"]["environment"], jobs["publish"]["permissions"]) == ("release", {"id-token": "write"})
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None,
        "materials": "build",
        "attest": ["build", "materials"],
        "publish": ["build", "attest"],
    }
    for name in ("attest", "publish"):  # no code of the project, and none of a tool, beside the right to sign
        assert {step["run"] for step in jobs[name]["steps"] if "run" in step} <= set(CHECKS)
        used = [step["uses"].partition("@")[0] for step in jobs[name]["steps"] if "uses" in step]
        assert set(used) <= {
            *("actions/download-artifact", "actions/attest-build-provenance", "actions/attest-sbom"),
            "pypa/gh-action-pypi-publish",
        }


def digest_of(job: dict[str, Any], place: Path) -> str:
    """What a job's step of digests gives to later jobs, when it is run in a folder."""
    (step,) = (step for step in job["steps"] if step.get("run") in DIGESTS)
    assert job["outputs"] == {"sha256": f"${{{{ steps.{step['id']}.outputs.sha256 }}}}"}
    output = place / "output"
    output.unlink(missing_ok=True)
    subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=place, env={**os.environ, "GITHUB_OUTPUT": output}, check=True
    )
    return output.read_text("utf-8").strip().removeprefix("sha256=")


def test_attack_an_artefact_that_another_job_has_replaced_is_neither_attested_nor_published(tmp_path: Path) -> None:
    """Jobs hand files on by a name, which any job of the run may give to other files."""
    jobs = read(FORGE / "workflows" / "release.yml")["jobs"]
    for folder in ("dist", "sbom"):
        (tmp_path / folder).mkdir()
    wheel, more, bill = tmp_path / "dist" / "a.whl", tmp_path / "dist" / "b.whl", tmp_path / "sbom" / "a.json"
    wheel.write_bytes(b"built")
    bill.write_bytes(b"listed")
    given = {name: digest_of(jobs[name], tmp_path) for name in ("build", "materials")}

    def passes(name: str, **changed: str) -> bool:
        """Whether a job goes on after its checks, the first steps after those that load files."""
        loads = [step for step in jobs[name]["steps"] if "download-artifact@" in step.get("uses", "")]
        checks = [step for step in jobs[name]["steps"] if "run" in step]
        assert len(loads) == len(checks)
        assert jobs[name]["steps"][: 2 * len(loads)] == [*loads, *checks]
        for step in checks:
            (wanted,) = re.findall(r"^\${{ needs\.(\w+)\.outputs\.sha256 }}$", step["env"]["SHA256"])
            told = {**os.environ, "SHA256": {**given, **changed}[wanted]}
            if subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=told).returncode:
                return False
        return True

    assert passes("attest")
    assert passes("publish")
    wheel.write_bytes(b"replaced")
    assert not passes("attest")
    assert not passes("publish")
    wheel.write_bytes(b"built")
    more.write_bytes(b"added")
    assert not passes("attest")
    assert not passes("publish")
    more.unlink()
    assert not passes("publish", build=""), "no digest is no pass"
    bill.write_bytes(b"replaced")
    assert not passes("attest")
    assert passes("publish"), "which publishes no list"


def locked() -> dict[str, tuple[str, str]]:
    """The tools of a build: their version and the one hash of each."""
    lines = [line for line in (ROOT / "build-lock.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    found = [re.fullmatch(r"([a-z0-9-]+)==([\d.]+) --hash=sha256:([0-9a-f]{64})", line) for line in lines]
    assert all(found), lines
    return {each[1]: (each[2], each[3]) for each in found if each}


def test_a_build_takes_its_tools_by_hash_and_asks_no_index() -> None:
    tools = locked()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    normal = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    assert {name: version for name, (version, _) in tools.items()} == {name: normal[name] for name in tools}
    assert {re.split("[>=]", each)[0] for each in PROJECT["build-system"]["requires"]} | {"build"} <= tools.keys()
    script = (ROOT / ".ci" / "build").read_text("utf-8")
    for word in ("--require-hashes", "--no-deps", "--only-binary :all:", "build-lock.txt", "-m build --no-isolation"):
        assert word in script
    for name in ("release", "pack"):
        text = (ROOT / ".ci" / name).read_text("utf-8")
        assert ".ci/build " in text
        assert "-m build" not in text
    build = read(FORGE / "workflows" / "release.yml")["jobs"]["build"]
    assert [step["run"] for step in build["steps"] if "run" in step] == [
        "python -m venv .venv",
        '.ci/release "$GITHUB_REF_NAME"',
        DIGESTS[0],
    ]


def test_the_tools_of_a_build_are_whole_without_others() -> None:
    """What these need is among them, as far as they are installed here."""
    tools = locked()
    for name in tools:
        try:
            asked = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue
        needed = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in asked if ";" not in line}
        assert needed <= tools.keys(), name


@pytest.mark.nightly
def test_two_builds_are_the_same_bytes_and_a_tool_of_another_hash_is_refused(tmp_path: Path) -> None:
    built = []
    for place in ("one", "two"):
        done = ci("build", str(tmp_path / place))
        assert done.returncode == 0, done.stderr
        built.append({path.name: path.read_bytes() for path in (tmp_path / place).iterdir()})
    assert len(built[0]) == 2
    assert built[0] == built[1]
    (tmp_path / "other" / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "build", tmp_path / "other" / ".ci")
    text = (ROOT / "build-lock.txt").read_text("utf-8")
    digit = text[(at := text.index("sha256:") + 7)]
    edited = f"{text[:at]}{'0' if digit != '0' else '1'}{text[at + 1 :]}"
    (tmp_path / "other" / "build-lock.txt").write_text(edited, "utf-8")
    told = {**os.environ, "PRIVSTATS_PYTHON": sys.executable}
    script = [tmp_path / "other" / ".ci" / "build", tmp_path / "out"]
    refused = subprocess.run(script, env=told, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr


def test_hooks_run_the_tools_of_the_environment() -> None:
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    tools = {hook["entry"].split()[0] for hook in local["hooks"]}
    assert [hook["id"] for hook in local["hooks"]] == ["ruff", "ruff-format", "mypy"]
    wanted = {re.split("[>=]", line)[0] for line in PROJECT["project"]["optional-dependencies"]["dev"]}
    assert tools <= wanted
    assert all(hook["language"] == "system" for hook in local["hooks"])


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_one_that_a_forge_shows(name: str) -> None:
    form = read(FORGE / "ISSUE_TEMPLATE" / name)
    assert {"name", "description", "body"} <= set(form)
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in asked} <= {"input", "textarea"}
    assert all(re.fullmatch(r"[a-z]+", part["id"]) and part["attributes"]["label"] for part in asked)
    assert len({part["id"] for part in asked}) == len(asked)
    assert any(part["validations"]["required"] for part in asked)


def test_the_bug_form_sends_vulnerabilities_elsewhere() -> None:
    assert "SECURITY.md" in (FORGE / "ISSUE_TEMPLATE" / "bug.yml").read_text("utf-8")
    assert read(FORGE / "ISSUE_TEMPLATE" / "config.yml") == {"blank_issues_enabled": False}
