"""Attack: a server that sends a node more than any plan needs; the node ends, and nothing else of its machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from privstats.system import resource

pytestmark = pytest.mark.skipif(
    resource is None or not Path("/proc/self/stat").exists(), reason="this system does not count allocated bytes"
)

BOUND = "from privstats.engines.flower import node_memory\nnode_memory.bind_memory(1 << 30)\n"
ENDLESS = """
import re
from pathlib import Path
from flwr.supercore.inflatable.inflatable_utils import pull_objects
pulled = []
def piece(name):
    pulled.append(name)
    return b"x" * (64 << 20)
try:
    pull_objects([str(number) for number in range(200)], piece)
except MemoryError:
    most = re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())  # of this program alone
    print(len(pulled), int(most[1]) >> 10)
"""
LIMITS = "import resource; print(*resource.getrlimit(resource.RLIMIT_DATA))"
CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', {source!r}], check=True)"


def said(source: str) -> str:
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_attack_a_message_without_end_takes_no_more_than_the_bound() -> None:
    pieces, mebibytes = map(int, said(BOUND + ENDLESS).split())
    assert 5 < pieces < 20
    assert mebibytes < 1 << 10


@pytest.mark.parametrize("unbinds", [False, True])
def test_what_measures_records_is_not_bound(unbinds: bool) -> None:
    source = "from privstats.engines.flower import node_memory\nnode_memory.unbind_memory()\n" if unbinds else ""
    limits = said(BOUND + CHILD.format(source=source + LIMITS)).split()
    own = resource.getrlimit(resource.RLIMIT_DATA)
    assert limits == list(map(str, own)) if unbinds else limits[0] == str(1 << 30)


def test_a_lower_limit_of_the_operator_stays() -> None:
    lower = "from resource import *\nsetrlimit(RLIMIT_DATA, (900 << 20, getrlimit(RLIMIT_DATA)[1]))\n"
    assert said(lower + BOUND + LIMITS).split()[0] == str(900 << 20)
