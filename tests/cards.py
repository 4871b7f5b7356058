"""Devices of torch on which tests of tensors run: host memory, and a CUDA device, whose tests skip where none is."""

import pytest

torch = pytest.importorskip("torch", reason="torch is an extra")
CARD = torch.cuda.is_available()
NEEDS_CARD = pytest.mark.skipif(not CARD, reason="no CUDA device here")
DEVICES = ["cpu", pytest.param("cuda", marks=NEEDS_CARD)]
