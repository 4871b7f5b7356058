"""Add a model of rounds: compute gradients in integers, and extend the softmax and its recipe.

A model is a function that returns a ``Module``, under the entry points ``privstats.modules``. docs/how_to_add.md has
the steps under "A model of rounds in a package of your own".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.estimates.denoise import NoisyClassSums as NoisyClassSums
    from privstats.estimates.filter_bank import Filter as Filter
    from privstats.estimates.filter_bank import advanced as advanced
    from privstats.estimates.recipes import SoftmaxRecipe as SoftmaxRecipe
    from privstats.estimates.softmax import INTERCEPT as INTERCEPT
    from privstats.estimates.softmax import SoftmaxWhitening as SoftmaxWhitening
    from privstats.estimates.softmax import started as started
    from privstats.moments.gradient_map import PROBABILITY_BITS as PROBABILITY_BITS
    from privstats.moments.gradient_map import SHY as SHY
    from privstats.moments.gradient_map import exponentials as exponentials
    from privstats.moments.gradient_map import residuals_of as residuals_of
    from privstats.moments.gradient_map import shortened as shortened
    from privstats.schema.modules import Ints as Ints
    from privstats.schema.modules import Module as Module
    from privstats.transforms.exact import arrays_of as arrays_of
    from privstats.transforms.random_maps import GAUSSIAN_SCALE as GAUSSIAN_SCALE
    from privstats.transforms.random_maps import gaussian_matrix as gaussian_matrix
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.estimates.denoise": ["NoisyClassSums"],
            "privstats.estimates.filter_bank": ["Filter", "advanced"],
            "privstats.estimates.recipes": ["SoftmaxRecipe"],
            "privstats.estimates.softmax": ["INTERCEPT", "SoftmaxWhitening", "started"],
            "privstats.moments.gradient_map": ["PROBABILITY_BITS", "SHY", "exponentials", "residuals_of", "shortened"],
            "privstats.schema.modules": ["Ints", "Module"],
            "privstats.transforms.exact": ["arrays_of"],
            "privstats.transforms.random_maps": ["GAUSSIAN_SCALE", "gaussian_matrix"],
        },
    )
