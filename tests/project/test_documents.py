"""Every snippet in the README and the docs runs, top to bottom, one namespace per page."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN_BY_CI = re.compile(r"<!-- command: (\w+) -->\n```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    text = RUN_BY_CI.sub("", page.read_text("utf-8"))
    return [(language, body) for language, body in FENCE.findall(text) if language in languages]


def commands(body: str) -> list[list[str]]:
    joined = body.replace("\\\n", " ")
    return [
        shlex.split(line, comments=True) for line in joined.splitlines() if line.strip() and not line.startswith("#")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_and_shell_snippets_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for language, body in blocks(page, "python", "bash"):
        if language == "python":
            exec(compile(body, str(page), "exec"), namespace)
            continue
        for words in commands(body):
            assert words[0] in {"privstats", "python"}, (
                f"{page.name}: {words[0]!r} is no command that the tests can run"
            )
            module = ["-m", "privstats"] if words[0] == "privstats" else []
            where = tmp_path if words[0] == "privstats" else ROOT
            done = subprocess.run([sys.executable, *module, *words[1:]], cwd=where, capture_output=True, text=True)
            assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"


def test_the_readme_names_the_two_commands_that_ci_runs():
    named = dict(RUN_BY_CI.findall((ROOT / "README.md").read_text("utf-8")))
    assert set(named) == {"demo", "test"}
    assert all(len(body.strip().splitlines()) == 1 for body in named.values())
