"""The heads by name: for which task, from which statistics, and where each lives.

Data only, so that the command line, error messages and the file reader can speak of heads without importing them. No
head and no parameter: those are in the modules named here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

__all__ = ["HEADS", "Entry", "Task", "able", "head_class", "named"]

Task: TypeAlias = Literal["classes", "ridge"]


@dataclass(frozen=True)
class Entry:
    """One head.

    Attributes:
        name: of its class.
        module: of ``privstats.heads`` that holds it.
        task: of the schemas whose releases it is built from.
        any_of: letters of which one must be released beside N and A, the best first; none where N and A alone suffice.
        closed_form: solved at once, rather than trained on synthetic records.
    """

    name: str
    module: str
    task: Task = "classes"
    any_of: str = ""
    closed_form: bool = True

    @property
    def measured(self) -> str:
        """Statistics that ``fit`` measures of local records."""
        return "NA" + self.any_of[:1]


HEADS = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Entry("NaiveBayes", "naive_bayes", any_of="DB"),
            Entry("LDA", "discriminant", any_of="B"),
            Entry("QDA", "quadratic", any_of="S"),
            Entry("RDA", "quadratic", any_of="S"),
            Entry("LowRankQDA", "low_rank", any_of="S"),
            Entry("RidgeClassifier", "ridge", any_of="B"),
            Entry("FisherMix", "fisher_mix", any_of="SB", closed_form=False),
            Entry("ProtoHyper", "proto_hyper", any_of="SB", closed_form=False),
            Entry("Ridge", "ridge", task="ridge"),
        )
    }
)
"""Every head of the package, in the order in which lists show them."""


def head_class(name: str) -> Any:
    """The class of a head of the registry."""
    return getattr(import_module(f"privstats.heads.{HEADS[name].module}"), name)


def named(task: Task, *, trained: bool = True) -> tuple[str, ...]:
    """Names of the heads for a task, in order; ``trained=False`` leaves out those that are no closed form."""
    return tuple(name for name, entry in HEADS.items() if entry.task == task and (trained or entry.closed_form))


def able(statistics: str) -> tuple[str, ...]:
    """Names of the classification heads that can be built from these statistics (S brings B and D with it)."""
    held = set(statistics) | (set("BD") if "S" in statistics else set())
    entries = (HEADS[name] for name in named("classes"))
    return tuple(entry.name for entry in entries if not entry.any_of or held & set(entry.any_of))
