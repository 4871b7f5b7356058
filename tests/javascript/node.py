"""Node, where this machine has one that is recent enough for the client in ``clients/javascript``."""

import shutil
import subprocess
from pathlib import Path

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
