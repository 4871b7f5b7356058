"""Add a head: state its entry, the bounds of its parameters and its rule, and read the released evidence.

A head is a class over ``privstats.heads.ClassHead`` under the entry points ``privstats.heads``. Its rule is announced
under ``privstats.rules``. A ``HeadFormat`` (``privstats.head_formats``) reads files of heads. A ``Scorer``
(``privstats.published``) scores records under a published head. docs/how_to_add.md has the steps under "A head or an
attack in a package of your own".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.estimates.discriminant import Priors as Priors
    from privstats.estimates.discriminant import Shrinkage as Shrinkage
    from privstats.heads.evidence import ClassEvidence as ClassEvidence
    from privstats.heads.evidence import Released as Released
    from privstats.heads.file_formats import HeadFormat as HeadFormat
    from privstats.heads.fitting.subspace import Subspace as Subspace
    from privstats.heads.provenance import EXACT as EXACT
    from privstats.heads.registry.entries import HEADS as HEADS
    from privstats.heads.registry.entries import SWITCH as SWITCH
    from privstats.heads.registry.entries import Bounds as Bounds
    from privstats.heads.registry.entries import Constraint as Constraint
    from privstats.heads.registry.entries import Entry as Entry
    from privstats.heads.registry.entries import Number as Number
    from privstats.heads.registry.entries import Text as Text
    from privstats.heads.registry.entries import Whole as Whole
    from privstats.heads.registry.entries import check_parameters as check_parameters
    from privstats.heads.rules.rule import LinearRule as LinearRule
    from privstats.heads.rules.rule import Rule as Rule
    from privstats.heads.rules.rule import WhitenedRule as WhitenedRule
    from privstats.heads.rules.rule import as_numpy as as_numpy
    from privstats.heads.rules.rule import lengths as lengths
    from privstats.heads.rules.rule import local as local
    from privstats.heads.rules.rule import units_in_graph as units_in_graph
    from privstats.kinds.scorers import Scorer as Scorer
    from privstats.workflows.score import Scores as Scores
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.estimates.discriminant": ["Priors", "Shrinkage"],
            "privstats.heads.evidence": ["ClassEvidence", "Released"],
            "privstats.heads.file_formats": ["HeadFormat"],
            "privstats.heads.fitting.subspace": ["Subspace"],
            "privstats.heads.provenance": ["EXACT"],
            "privstats.heads.registry.entries": [
                "HEADS",
                "SWITCH",
                "Bounds",
                "Constraint",
                "Entry",
                "Number",
                "Text",
                "Whole",
                "check_parameters",
            ],
            "privstats.heads.rules.rule": [
                "LinearRule",
                "Rule",
                "WhitenedRule",
                "as_numpy",
                "lengths",
                "local",
                "units_in_graph",
            ],
            "privstats.kinds.scorers": ["Scorer"],
            "privstats.workflows.score": ["Scores"],
        },
    )
