"""Record spent budget: the ledger file of a data set, its accounts and caps, the price of a release, and registries."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.dp.ledger.accounts import Account as Account
    from privstats.dp.ledger.accounts import Cap as Cap
    from privstats.dp.ledger.accounts import Spend as Spend
    from privstats.dp.ledger.book import Ledger as Ledger
    from privstats.dp.ledger.price import Cost as Cost
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.dp.ledger.accounts": ["Account", "Cap", "Spend"],
            "privstats.dp.ledger.book": ["Ledger"],
            "privstats.dp.ledger.price": ["Cost"],
        },
    )
