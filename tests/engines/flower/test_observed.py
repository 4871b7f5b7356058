"""The observed federation: its doubles have the parameters of the functions that they replace."""

from importlib import import_module

import pytest

from privstats.engines.flower import entrypoint_guard
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network import party
from privstats.session import machines
from tests.engines.flower import observed

REPLACED = (
    (party, "answer", observed.observe_party),
    (machines, "as_contribution", observed.observe_party),
    (GridTransport, "pull_many", observed.observe_host),
    (entrypoint_guard, "command", lambda: observed.replace(entrypoint_guard, "command", observed.command)),
    (import_module("flwr.supernode.node_auth_http_interceptor"), "now", lambda: observed.shift_clock(5.0)),
)


@pytest.mark.parametrize(("name", "observe"), [each[1:] for each in REPLACED], ids=[each[1] for each in REPLACED])
def test_every_double_has_the_parameters_of_the_function_that_it_replaces(monkeypatch, name, observe):
    for owner, replaced, _ in REPLACED:
        monkeypatch.setattr(owner, replaced, getattr(owner, replaced))  # put back at the end
    before = [getattr(owner, replaced) for owner, replaced, _ in REPLACED if replaced == name]
    observe()
    assert [getattr(owner, replaced) for owner, replaced, _ in REPLACED if replaced == name] != before
