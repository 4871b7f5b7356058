"""Synthetic records: the Gaussian classes that moments describe, samples of them, and training on those.

Every sample is drawn from released moments, so none is private data.
"""

from privstats.heads.synthetic.samples import Samples
from privstats.heads.synthetic.training import Convergence, choose_device, converge
from privstats.heads.synthetic.world import World

__all__ = ["Convergence", "Samples", "World", "choose_device", "converge"]
