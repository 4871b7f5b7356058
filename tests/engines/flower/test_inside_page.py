"""The app on the page, as it stands there, in Flower's simulation; in the night with Ray, which makes its processes."""

import importlib
import re
import runpy
import sys
from pathlib import Path

import pytest
from flwr.simulation import run_simulation
from flwr.supercore.task_identity import TaskIdentity

from privstats.release import Release
from tests.engines.flower.quickstart import in_simulation
from tests.lacking import needs

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "inside_flower.md"


@pytest.fixture
def apps(tmp_path, monkeypatch):
    """The page's two apps, its study beside them."""
    pytest.importorskip("sklearn")
    for name, text in re.findall(r"^```py\n# (\S+\.py)\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    runpy.run_path("study.py")
    yield [importlib.import_module(f"quickstart.{each}_app").app for each in ("server", "client")]
    for name in [name for name in sys.modules if name.split(".")[0] == "quickstart"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "by_ray",
    [pytest.param(False, marks=pytest.mark.ci), pytest.param(True, marks=[pytest.mark.nightly, pytest.mark.waits])],
)
def test_the_app_on_the_page_runs_in_flowers_simulation(apps, by_ray, tmp_path, monkeypatch, capsys):
    if by_ray:
        needs("ray")
        run_simulation(*apps, 5)
    else:
        in_simulation(monkeypatch, *apps, 5)
    release = Release.load(tmp_path / "study" / "host" / "release.safetensors")
    assert release.survivors == (0, 1, 2, 3, 4)
    said = capsys.readouterr().out
    accuracies = [float(number) for number in re.findall(r"'accuracy': ([0-9.]+)", said)]
    assert len(accuracies) >= 2
    assert min(accuracies) > 0.85
