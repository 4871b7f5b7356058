"""The gate: which Flower is started, and that every name that is replaced is there and what it was."""

import logging
from importlib import import_module
from pathlib import Path

import pytest

from privstats.engines.flower import entrypoint_guard, replaced_names
from privstats.engines.flower.replaced_names import MINORS, TESTED, check_version, is_tested, replace
from privstats.errors import PrivstatsError

ROOT = Path(__file__).parents[3]


class TestVersion:
    def test_the_installed_one_is_started(self):
        check_version()

    @pytest.mark.parametrize("patch", ["0", "1", "17"])
    @pytest.mark.parametrize("minor", MINORS)
    def test_a_patch_release_is(self, monkeypatch, minor, patch):
        monkeypatch.setattr(replaced_names.importlib.metadata, "version", lambda _: f"{minor}.{patch}")
        check_version()

    @pytest.mark.parametrize("other", ["1.40.9", "1.43.0", "2.42.0", "1.420.0", "1.42.0rc1", "1.42", "1.42.0.dev1"])
    def test_no_other_is(self, monkeypatch, other):
        monkeypatch.setattr(replaced_names.importlib.metadata, "version", lambda _: other)
        with pytest.raises(PrivstatsError) as error:
            check_version()
        said = f'flwr {other} is installed, this engine is made for 1.41 and 1.42: pip install "privstats[flower]"'
        assert str(error.value) == said


class TestNames:
    @pytest.mark.parametrize(("module", "name"), [(module, name) for module in TESTED for name in TESTED[module]])
    def test_each_is_in_the_installed_flower_what_it_was(self, module, name):
        assert is_tested(module, name)

    def test_the_programs_replace_these_and_no_others(self, monkeypatch):
        replaced = set()
        monkeypatch.setattr(
            entrypoint_guard, "replace", lambda module, names: replaced.update((module, name) for name in names)
        )
        monkeypatch.setattr(entrypoint_guard, "end_with", lambda _: None)
        for name, value in {
            "PRIVSTATS_FLEET_ADDRESS": "x:1",
            "PRIVSTATS_HOME": "host",
            "PRIVSTATS_WAKE_UP_PIPE": "wake-up",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv(entrypoint_guard.fork_server.PROGRAM, "flwr-clientapp")
        monkeypatch.setattr(entrypoint_guard.fork_server, "ForkedPrograms", str)
        monkeypatch.setattr(logging.getLogger("flwr"), "filters", [])
        for start in entrypoint_guard._MAINS.values():
            start()
        assert replaced == {(module, name) for module in TESTED for name in TESTED[module]}


class TestReplace:
    MODULE = "flwr.superlink.main"

    @pytest.fixture
    def module(self, monkeypatch):
        module = import_module(self.MODULE)
        monkeypatch.setattr(module, "_get_middleware", module._get_middleware)
        return module

    def test_it_is_put_in_place(self, module):
        assert replace(self.MODULE, {"_get_middleware": len}) is module
        assert module._get_middleware is len

    def test_also_in_a_class(self, monkeypatch):
        state = import_module("flwr.supercore.corestate.sql_corestate").SqlCoreState
        monkeypatch.setattr(state, "_cleanup_expired_task_tokens", state._cleanup_expired_task_tokens)
        replace(state.__module__, {"SqlCoreState._cleanup_expired_task_tokens": len})
        assert state._cleanup_expired_task_tokens is len

    @pytest.mark.parametrize("other", [lambda config: [], lambda *_: [], None, "text", pytest])
    def test_a_name_that_is_something_else_in_a_patch_release_stops_the_program(self, module, monkeypatch, other):
        module._get_middleware = other
        monkeypatch.setattr(replaced_names.importlib.metadata, "version", lambda _: "1.42.7")
        with pytest.raises(PrivstatsError) as error:
            replace(self.MODULE, {"_get_middleware": len})
        assert str(error.value) == (
            "flwr.superlink.main of flwr 1.42.7 has no _get_middleware as in 1.42.0 to be replaced: nothing was "
            'started; pip install "privstats[flower]" "flwr==1.42.0"'
        )
        assert module._get_middleware is other

    def test_a_module_that_became_something_else_does_too(self, monkeypatch):
        name = "flwr.supernode.start_client_internal"
        monkeypatch.setattr(import_module(name), "time", lambda: 0)
        assert not is_tested(name, "time")


def test_the_picture_of_the_boundary_counts_the_names():
    count = sum(map(len, TESTED.values()))
    assert f"{count} names replaced" in (ROOT / "docs" / "images" / "flower-boundary.svg").read_text("utf-8")
    assert count == 21
    assert "twenty-one names inside Flower" in (ROOT / "docs" / "threat_model.md").read_text("utf-8")
