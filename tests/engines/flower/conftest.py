"""What tests of Flower share: a task to make messages in, and the certificates of a server."""

from pathlib import Path

import pytest

from privstats.engines.flower.certificates import write_certificates


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower makes messages inside a task only."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls") / "certificates"
    write_certificates(folder, ["localhost"], days=1)
    return folder
