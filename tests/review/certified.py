"""A certified plan that the tests of the checker start from, and the checker alone in a folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import privstats as ps
from privstats.review import certificate_checker
from privstats.review.certificate import certificate_text
from tests import made

CHECKER = Path(certificate_checker.__file__)
COHORT = ps.Cohort(20, 15, 5000, 2)
PARTY = {"unit": "client", "max_records_per_client": 1}


def plan_of(model: str = "distributed", schema: Any = None, **changes: Any) -> ps.Plan:
    return made.plan(schema or ps.ClassSchema(3, 5, "NAB", 1.5), COHORT, made.promise(model, **changes))


PLAN = plan_of(adjacency="replace-one")
TEXT = certificate_text(PLAN)


def lone(folder: Path, plan: str | bytes, certificate: str | bytes) -> subprocess.CompletedProcess[str]:
    """The checker as a file of its own, in a folder of its own, without any package."""
    shutil.copy(CHECKER, folder / "checker.py")
    for name, text in (("plan.toml", plan), ("certificate.json", certificate)):
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    command = [sys.executable, "-S", "-I", "checker.py", "plan.toml", "certificate.json"]
    return subprocess.run(command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, timeout=60)
