"""The command in an empty folder, and a terminal to ask on."""

import pytest
from typer.testing import CliRunner

from privstats.cli.main import app
from privstats.cli.parts import wizard


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(wizard, "can_ask", lambda: True)


@pytest.fixture
def init(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*words, code=None, **how):
        done = CliRunner().invoke(app, ["plan", "init", *words], **how)
        assert code in (None, done.exit_code), done.output
        return done

    return invoke
