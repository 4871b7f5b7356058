"""A release as heads read it: sums in real units, their noise levels, and the classes that are left.

Local records and releases reach every head in this one form, before any estimate.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.heads.evidence.classes import Array as Array
    from privstats.heads.evidence.classes import ClassEvidence as ClassEvidence
    from privstats.heads.evidence.classes import class_evidence as class_evidence
    from privstats.heads.evidence.classes import records_evidence as records_evidence
    from privstats.heads.evidence.released import Released as Released
    from privstats.heads.evidence.released import class_sums as class_sums
    from privstats.heads.evidence.released import require_release as require_release
    from privstats.heads.evidence.ridge import FoldSums as FoldSums
    from privstats.heads.evidence.ridge import GramEvidence as GramEvidence
    from privstats.heads.evidence.ridge import records_gram as records_gram
    from privstats.heads.evidence.ridge import release_gram as release_gram
else:
    __getattr__, __dir__ = lazy_names(__name__)
