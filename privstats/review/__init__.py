"""Review a plan before anything runs: its facts, what drop-outs cost, and the difference of two plans.

The certificate's checker imports nothing of the library: it derives each bound again.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.review.drop_outs import Dropout as Dropout
    from privstats.review.drop_outs import dropout_table as dropout_table
    from privstats.review.plan_facts import Change as Change
    from privstats.review.plan_facts import Consequence as Consequence
    from privstats.review.plan_facts import Difference as Difference
    from privstats.review.plan_facts import difference as difference
    from privstats.review.plan_facts import facts as facts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.review.drop_outs": ["Dropout", "dropout_table"],
            "privstats.review.plan_facts": ["Change", "Consequence", "Difference", "difference", "facts"],
        },
    )
