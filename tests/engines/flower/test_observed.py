"""The observed federation: its doubles take what the functions take in whose place they stand; why it ends is said."""

from importlib import import_module
from types import SimpleNamespace

import pytest

from privstats.engines.flower import entrypoint_guard
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network import party
from privstats.session import machines
from tests.engines.flower import observed
from tests.engines.flower.federation import Federation

REPLACED = (
    (party, "answer", observed.observe_party),
    (machines, "as_contribution", observed.observe_party),
    (GridTransport, "pull_many", observed.observe_host),
    (entrypoint_guard, "command", lambda: observed.replace(entrypoint_guard, "command", observed.command)),
    (import_module("flwr.supernode.node_auth_http_interceptor"), "now", lambda: observed.shift_clock(5.0)),
)


@pytest.mark.parametrize(("name", "observe"), [each[1:] for each in REPLACED], ids=[each[1] for each in REPLACED])
def test_every_double_has_the_parameters_of_the_function_in_whose_place_it_stands(monkeypatch, name, observe):
    for owner, replaced, _ in REPLACED:
        monkeypatch.setattr(owner, replaced, getattr(owner, replaced))  # put back at the end
    before = [getattr(owner, replaced) for owner, replaced, _ in REPLACED if replaced == name]
    observe()
    assert [getattr(owner, replaced) for owner, replaced, _ in REPLACED if replaced == name] != before


@pytest.mark.parametrize("double", [lambda home, kind, data: None, lambda home, kind, data, simulated: None])
def test_a_double_with_other_parameters_is_refused_by_name(monkeypatch, double):
    monkeypatch.setattr(party, "answer", party.answer)
    with pytest.raises(TypeError, match=r"answer takes \(.*simulated: .*\), its double \(home, kind, data"):
        observed.replace(party, "answer", double)


def test_a_federation_that_waits_in_vain_says_in_its_last_line_what_for_and_why(tmp_path):
    federation = Federation(SimpleNamespace(identities=[], helpers=[]), tmp_path)
    said = 'File "observed.py", line 67, in answer: TypeError'
    (tmp_path / "party 3.log").write_text(f"2026 ERROR privstats.party: {said}\nINFO: the round ends\n\n")
    (tmp_path / "run.log").write_text("flwr.GridError: the run failed\n\n")
    with pytest.raises(AssertionError) as stopped:
        federation.wait(lambda: False, "the release is written", 0)
    last = str(stopped.value).splitlines()[-1]
    assert last.startswith("waited 0 s for: the release is written; party 3: ")
    assert said in last
    assert last.endswith("; run: flwr.GridError: the run failed")
