"""Torch tensors at the door, recognised without importing torch.

Tensors in host memory become numpy arrays over the same memory; tensors on an accelerator are measured where they are
(``device``).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

__all__ = ["host_rows", "is_bfloat16", "is_tensor", "on_device", "require_plain"]


def is_tensor(array: Any) -> bool:
    """Whether ``array`` is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def on_device(array: Any) -> bool:
    """Whether ``array`` is a torch tensor outside host memory."""
    return is_tensor(array) and array.device.type != "cpu"


def host_rows(tensor: Any) -> NDArray[Any]:
    """A plain tensor in host memory as a numpy array over the same memory; bfloat16 is widened to float32, exactly."""
    return np.asarray((tensor.float() if is_bfloat16(tensor) else tensor).numpy())


def is_bfloat16(tensor: Any) -> bool:
    """Whether the entries are of the one type that numpy does not have."""
    return str(tensor.dtype) == "torch.bfloat16"


def require_plain(tensor: Any, field: str) -> None:
    """Raise DataError for tensors that are sparse or require a gradient."""
    if str(tensor.layout) != "torch.strided":
        raise DataError(f"{field} is a sparse tensor; convert it with to_dense(), or pass a scipy csr_array")
    if tensor.requires_grad:
        raise DataError(f"{field} requires a gradient, which moments do not carry; pass {field}.detach()")
