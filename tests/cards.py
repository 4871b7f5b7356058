"""Devices of torch on which tests of tensors run: host memory, and a CUDA device, whose tests skip where none is."""

import sys
from collections.abc import Callable

import pytest

from privstats.intake.arrays import is_tensor
from privstats.records import opened

torch = pytest.importorskip("torch", reason="torch is an extra")
CARD = torch.cuda.is_available()
NEEDS_CARD = pytest.mark.skipif(not CARD, reason="no CUDA device here")
DEVICES = ["cpu", pytest.param("cuda", marks=NEEDS_CARD)]


def tensors_elsewhere(patch: pytest.MonkeyPatch, elsewhere: Callable[[object], bool] = is_tensor) -> None:
    """Have tensors in host memory pass for tensors elsewhere, in every module that reads records.

    Args:
        elsewhere: which of them.
    """
    room = opened.__name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{room}.") and hasattr(module, "on_device"):
            patch.setattr(module, "on_device", elsewhere)
