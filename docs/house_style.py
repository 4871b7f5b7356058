"""How the pictures of the gallery look: the colours of all other figures, and words that a thumbnail shows as well."""

from __future__ import annotations

from typing import Any

from privstats.inference.figures import LINES

STYLE: dict[str, Any] = {
    "figure.figsize": (4.4, 3.08),  # as wide beside its height as a thumbnail, of which a point is a pixel then
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "savefig.dpi": 150,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "image.cmap": "Blues",
}


def apply(gallery_conf: Any = None, fname: Any = None) -> None:  # noqa: ARG001 - as the gallery calls it
    """Set the style before an example runs."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({**STYLE, "axes.prop_cycle": plt.cycler(color=LINES)})
