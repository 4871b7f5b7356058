"""Node, where this machine has one that is recent enough for the client in ``clients/javascript``."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CLIENT = Path(__file__).parents[2] / "clients" / "javascript"
LEAST = 20


def lacks() -> str:
    """Why there is no Node to run, empty where there is one."""
    node = shutil.which("node")
    if node is None:
        return "node is not installed here"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
    return "" if said.startswith("v") and int(said[1:].split(".")[0]) >= LEAST else f"node {said} is older than {LEAST}"


LACKS = lacks()
needs_node = pytest.mark.skipif(bool(LACKS), reason=LACKS or "node is here")


def node(*arguments: str, timeout: int = 120) -> subprocess.CompletedProcess:
    """What node says, run in the client's folder."""
    return subprocess.run(["node", *arguments], cwd=CLIENT, capture_output=True, text=True, timeout=timeout)


def evaluated(script: str, told: Any, place: Path) -> str:
    """Return what a module prints that reads the JSON of ``told`` at ``process.argv[1]``."""
    (place / "told.json").write_text(json.dumps(told))
    done = node("--input-type=module", "--eval", script, str(place / "told.json"))
    assert done.returncode == 0, done.stderr
    return done.stdout
