"""A release as heads read it: sums in real units, their noise levels, and the classes that are left.

Local records and releases reach every head in this one form, before any estimate.
"""

from privstats.heads.evidence.classes import Array, ClassEvidence, class_evidence, records_evidence
from privstats.heads.evidence.released import Released, class_sums, require_release
from privstats.heads.evidence.ridge import FoldSums, GramEvidence, records_gram, release_gram

__all__ = [
    "Array",
    "ClassEvidence",
    "FoldSums",
    "GramEvidence",
    "Released",
    "class_evidence",
    "class_sums",
    "records_evidence",
    "records_gram",
    "release_gram",
    "require_release",
]
