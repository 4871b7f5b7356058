"""The list of public names is that of the code, so a change that would break a script is seen and decided."""

from typing import Protocol

import privstats as ps
from tests.lacking import needs
from tests.project.public_names import LIST, parameters, text
from tests.without import WHOLE


@WHOLE
def test_the_list_of_public_names_is_that_of_the_code() -> None:
    needs("hypothesis")
    listed, there = set(LIST.read_text("utf-8").splitlines()), set(text().splitlines())
    changed = [f"- {line}" for line in sorted(listed - there)] + [f"+ {line}" for line in sorted(there - listed)]
    assert not changed, "\n".join(["decide by CONTRIBUTING.md, then: python -m tests.project.public_names", *changed])


def test_a_parameter_that_is_renamed_or_loses_its_default_changes_a_line() -> None:
    def sums(first, second=2, *rest, third, **more): ...

    assert parameters(sums) == "(first, second=, *rest, third, **more)"
    assert parameters(ps.Cohort) == "(clients, min_survivors, max_records, colluders=)"
    assert parameters(ps.Truth) == "(name, gaps=, *, values=)"


def test_what_no_script_calls_has_no_parameters() -> None:
    class Shape(Protocol): ...

    assert {parameters(value) for value in (ps.PlanError, Shape, ps.__version__, ps.dp, int | str)} == {""}
