"""The ways in which another machine computes: OpenBLAS's kernels by name, and numpy without its vector units.

Another order of additions gives other last digits, and a claim of "the same bits" has to hold all the same. Which of
them this processor can run is looked up; the others are left out.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from numpy._core import _multiarray_umath as numpy_core  # where numpy says what the processor has

__all__ = ["KERNELS", "python"]

ROOT = Path(__file__).parents[2]

_NEEDS = {  # OpenBLAS's names, each with what its kernels ask of the processor: any of these
    "Prescott": ("SSE3", "X86_V2"),
    "Nehalem": ("SSE42", "X86_V2"),
    "Sandybridge": ("AVX", "X86_V3"),
    "Haswell": ("AVX2", "X86_V3"),
    "SkylakeX": ("AVX512_SKX", "X86_V4"),
}


def _features() -> Mapping[str, bool]:
    found: Mapping[str, bool] = numpy_core.__cpu_features__
    return found


def _kernels() -> dict[str, dict[str, str]]:
    """Environments by name: the kernels of OpenBLAS that run here, and the oldest one without numpy's vector units."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return {}
    has = _features()
    found = {
        name: {"OPENBLAS_CORETYPE": name} for name, wanted in _NEEDS.items() if any(has.get(each) for each in wanted)
    }
    units = " ".join(name for name in numpy_core.__cpu_dispatch__ if has.get(name))
    scalar = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": units, "ATEN_CPU_CAPABILITY": "default"}
    return {**found, "no vector units": scalar}


KERNELS = _kernels()


def python(kernel: str, *words: str) -> subprocess.CompletedProcess[str]:
    """``python -m WORDS`` in the checkout with this kernel, in one thread."""
    told = {**os.environ, "OMP_NUM_THREADS": "1", "HYPOTHESIS_PROFILE": "dev", **KERNELS[kernel]}
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env=told, capture_output=True, text=True)
