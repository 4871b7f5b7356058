"""The deliberate bugs of sessions in programs of others: rows as in ``catalogue``, which takes them."""

from collections.abc import Callable
from typing import Any

from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import name_in

_INSIDE = "tests/engines/flower/test_inside.py::"
_STUDY = "tests/engines/network/test_simulated_study.py::"


def _with_its_text(right: Any) -> Callable[[Any, Any], Any]:
    def answered(message: Any, context: Any, find_home: Callable[[], Any]) -> Any:
        from privstats.engines.flower import records

        try:
            find_home()
        except Exception as error:
            return type(message)(records.pack("failed", str(error).encode()), reply_to=message)
        return right(message, context, find_home)

    return answered


def _whatever_lies_there(right: Any) -> Callable[[Any], Any]:
    return lambda folder: right(folder) if not folder.kind.single else (folder.release(0),)


INSIDE_MUTANTS: dict[str, Mutant] = {
    "an error's text in the reply": bug(
        "a party in somebody else's app sends the server the text of an error, which may hold records",
        name_in("privstats.engines.flower.inside", "answered", _with_its_text),
        _INSIDE + "TestJoin::test_no_text_of_an_error_leaves"),
    "keys of a simulation on a network": bug(
        "a node of a network answers under keys that one process made for all parties, and the masks hide nothing",
        name_in("privstats.engines.network.party", "check_not_simulated", lambda _: lambda roster: None),
        _STUDY + "test_no_node_of_a_network_answers_for_them",
        _INSIDE + "TestJoin::test_a_node_that_is_not_simulated_refuses_the_keys_of_a_simulation"),
    "any file for the release": bug(
        "after the end of a session whatever file lies in its folder is taken for its release",
        name_in("privstats.engines.network.host", "_released", _whatever_lies_there),
        _STUDY + "test_a_session_comes_of_them_once_and_every_ledger_is_full"),
}  # fmt: skip
