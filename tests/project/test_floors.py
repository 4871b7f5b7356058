"""The import contract notices what it is there to notice: each planted import breaks it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lacking import needs
from tests.without import WHOLE

pytestmark = WHOLE
ROOT = Path(__file__).parents[2]
PLANTED = {
    "privstats/heads/diagnostics.py": ("privstats.session", "privstats.heads.diagnostics -> privstats.session"),
    "privstats/heads/naive_bayes.py": ("privstats.secagg", "privstats.heads.naive_bayes -> privstats.secagg"),
    "privstats/workflows/suggest.py": ("privstats.testing", "privstats.workflows.suggest -> privstats.testing"),
    "privstats/workflows/score.py": ("privstats.workflows.simulate",
        "privstats.workflows.score -> privstats.workflows.simulate"),
    "privstats/heads/rules/rule.py": ("privstats.heads.fitting.subspace",
        "privstats.heads.rules.rule -> privstats.heads.fitting.subspace"),
    "privstats/heads/export.py": ("privstats.heads.estimator", "privstats.heads.export -> privstats.heads.estimator"),
    "privstats/engines/loopback.py": ("privstats.contrib.parts.dask",
        "privstats.engines.loopback -> privstats.contrib.parts.dask"),
    "privstats/session/client_updates.py": ("privstats.contrib.parts.dask",
        "privstats.session.client_updates -> privstats.contrib.parts.dask"),
    "privstats/dp/gaussian.py": ("privstats.secagg", "privstats.dp.gaussian -> privstats.secagg"),
    "privstats/engines/records.py": ("privstats.secagg.interactive.state",
        "privstats.engines.records -> privstats.secagg.interactive"),
    "privstats/secagg/wire.py": ("privstats.secagg.protocols", "privstats.secagg.wire -> privstats.secagg.protocols"),
    "privstats/release.py": ("privstats.engines", "privstats.release -> privstats.engines"),
    "privstats/contrib/http/dial.py": ("privstats.engines.journal.base",
        "privstats.contrib.http.dial -> privstats.engines.journal.base"),
    "privstats/contrib/nvflare/job.py": ("privstats.engines.network.host",
        "privstats.contrib.nvflare.job -> privstats.engines.network.host"),
    "privstats/workflows/rehearsal/page.py": ("privstats.extend.kinds",
        "privstats.workflows.rehearsal.page -> privstats.extend.kinds"),
    "privstats/schema/base.py": ("threat_models", "privstats.schema.base -> threat_models"),
}  # fmt: skip


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What lint-imports prints about a copy of the packages with every forbidden import planted."""
    needs("importlinter")
    tree = tmp_path_factory.mktemp("tree")
    for package in ("privstats", "threat_models"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    for file, (imported, _) in PLANTED.items():
        with (tree / file).open("a") as source:
            source.write(f"\nimport {imported}\n")
    (tree / "privstats" / "stray.py").write_text('"""A module that no floor names."""\n')
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    return done.stdout


@pytest.mark.parametrize("broken", [line for _, line in PLANTED.values()])
def test_a_planted_import_breaks_the_contract(verdict: str, broken: str) -> None:
    assert broken in verdict


def test_a_module_without_a_floor_breaks_the_contract(verdict: str) -> None:
    assert "stray" in verdict
