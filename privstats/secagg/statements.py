"""What a plan may have every report prove: the claim, its statement, and the group in which proved sums are masked.

The proofs are those of the one upload; a plan without them loads none of this.
"""

from privstats.secagg.upload.proof.claims import Claim, statement_of
from privstats.secagg.upload.proof.group import Prime

__all__ = ["Claim", "Prime", "statement_of"]
