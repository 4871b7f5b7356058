"""Import optional packages on request, and name the extra that installs a missing one."""

from __future__ import annotations

import importlib.util
from typing import Any

from privstats.errors import MissingExtraError

_INSTALL = {  # any other package under its own name
    "torch": "'privstats[torch]'",
    "opacus": "'privstats[torch]'",
    "matplotlib": "'privstats[report]'",
    "jinja2": "'privstats[report]'",
    "cyclonedx": "'privstats[report]'",
    "hypothesis": "'privstats[testing]'",
    "onnx": "'privstats[onnx]'",
    "onnxruntime": "onnxruntime",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "dask": "'privstats[dask]'",
    "distributed": "'privstats[dask]'",
    "fsspec": "'privstats[dask]'",
    "pyspark": "'privstats[spark]'",
    "ray": "'privstats[ray]'",
    "flwr": "'privstats[flower]'",
    "nvflare": "'privstats[nvflare]'",
    "python_calamine": "'privstats[files]'",
    "pyreadstat": "'privstats[files]'",
    "uvicorn": "'privstats[http]'",
    "httptools": "'privstats[http]'",
}


def load(module: str, *, by: str) -> Any:
    """Import an optional ``module`` on behalf of ``by``; MissingExtraError has the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing([module], by) from None


def require(*modules: str, by: str) -> None:
    """Refuse early where one of ``modules`` is missing, as :func:`load` does."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise _missing(missing, by)


def _missing(modules: list[str], by: str) -> MissingExtraError:
    packages = [module.partition(".")[0] for module in modules]
    wanted = " ".join(dict.fromkeys(_INSTALL.get(package, package) for package in packages))
    here = wanted.replace("'privstats[", "-e '.[")
    checkout = f", or in a checkout: pip install {here}" if here != wanted else ""
    return MissingExtraError(f"{by} needs {' and '.join(packages)}; install with: pip install {wanted}{checkout}")
