"""Every planted bug of privacy is in the core, or in a module that ``core.toml`` lists with its promise."""

import pytest

from privstats.plan import Plan
from privstats.release import require_survivors
from tests.mutation.catalogue import MUTANTS
from tests.mutation.planting import everywhere, homes, member, name_in, square_of
from tests.project.core_graph import PACKAGE, Graph, core_of, held, read_core

pytestmark = pytest.mark.ci  # it reads every module


@pytest.fixture(scope="module")
def unlisted() -> set[str]:
    """The modules that no list names."""
    graph, listed = Graph.read(), read_core()
    answers = graph.below(f"{PACKAGE}.{name}" for name in listed["answers"])
    return set(graph.modules) - core_of(graph, listed) - held(graph, listed) - answers


def _lost(bugs, unlisted) -> dict[str, set[str]]:
    """Return the unlisted modules by the bug that is in them."""
    found = {name: homes(edits) & unlisted for name, edits in bugs.items()}
    return {name: modules for name, modules in found.items() if modules}


def test_every_planted_bug_of_privacy_lies_in_the_core_or_in_the_list_of_what_holds(unlisted):
    lost = _lost({name: mutant.edits for name, mutant in MUTANTS.items()}, unlisted)
    assert not lost, f"name these modules in [holds] of tests/project/core.toml, with the promise: {lost}"


def test_a_bug_in_a_module_that_no_list_names_is_found(unlisted):
    edits = name_in("privstats.workflows.suggest", "exact_moments", lambda right: None)
    assert _lost({"planted": edits}, unlisted) == {"planted": {"privstats.workflows.suggest"}}


def test_a_bug_is_at_home_where_its_name_is_planted():
    journal = "privstats.engines.journal.server_view"
    assert homes(name_in(journal, "bound_to", lambda right: right)) == {journal}
    assert homes(member(Plan, "noise", None)) == {"privstats.plan.plan"}
    assert homes(everywhere(require_survivors, None)) == {"privstats.release"}
    assert homes(square_of("mean", lambda right: right)) == {"privstats.kinds.mean"}
