"""Draw synthetic rows from masked, noisy count tables of many parties."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.synthetic.columns import Hashed as Hashed
    from privstats.contrib.synthetic.columns import coded as coded
    from privstats.contrib.synthetic.columns import schema_of as schema_of
    from privstats.contrib.synthetic.course import Synthetic as Synthetic
    from privstats.contrib.synthetic.rows import SyntheticRows as SyntheticRows
    from privstats.contrib.synthetic.rows import synthetic as synthetic
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.synthetic.columns": ["Hashed", "coded", "schema_of"],
            "privstats.contrib.synthetic.course": ["Synthetic"],
            "privstats.contrib.synthetic.rows": ["SyntheticRows", "synthetic"],
        },
    )
