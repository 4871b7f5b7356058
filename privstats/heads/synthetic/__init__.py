"""Synthetic records: the Gaussian classes that moments describe, samples of them, and training on those.

Every sample is drawn from released moments, so none is private data.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.heads.synthetic.samples import Samples as Samples
    from privstats.heads.synthetic.training import Convergence as Convergence
    from privstats.heads.synthetic.training import choose_device as choose_device
    from privstats.heads.synthetic.training import converge as converge
    from privstats.heads.synthetic.world import World as World
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
