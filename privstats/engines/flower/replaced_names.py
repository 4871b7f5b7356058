"""Names inside of Flower that are replaced, with each one's required parameters: nothing starts where one differs.

Any release may change these private names. A minor release is read before it joins :data:`MINORS`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from privstats.errors import PrivstatsError

MINORS = ("1.41", "1.42")
"""The minor releases of Flower that were read and tested, the first release of each."""

_MODULE = ("a module",)
_MONITOR = ("parent_pid",)
_BUNDLE = ("fab_file", "install_dir", "skip_prompt")

TESTED: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "flwr.supernode.runtime.run_clientapp": {
            "install_from_fab": _BUNDLE,
            "get_load_client_app_fn": ("default_app_ref", "app_path", "multi_app"),
            "start_parent_process_monitor": _MONITOR,
        },
        "flwr.superlink.runtime.run_serverapp": {
            "install_from_fab": _BUNDLE,
            "get_project_config": ("project_dir",),
            "get_fused_config_from_dir": ("project_dir", "override_config"),
            "run_": ("grid", "context", "server_app_dir", "server_app_attr", "loaded_server_app"),
            "start_parent_process_monitor": _MONITOR,
        },
        "flwr.supercore.superexec.run_superexec": {"start_parent_process_monitor": _MONITOR, "time": _MODULE},
        "flwr.supercore.superexec.executor.subprocess_executor": {"subprocess": _MODULE},
        "flwr.supernode.start_client_internal": {
            "time": _MODULE,
            "subprocess": _MODULE,
            "_push_messages": ("state", "object_store", "send", "push_object"),
        },
        "flwr.supernode.main": {"create_app": ("state_factory", "superexec_auth_secret")},
        "flwr.supercore.protobuf.client": {
            "ProtobufClient._unary_unary": ("self", "path", "rpc_method", "request", "response_type", "timeout"),
            "ProtobufClient._send": ("self", "context", "stream"),
        },
        "flwr.superlink.cli.flower_superlink": {"_run_superlink_http_api": ("lifespan_config",)},
        "flwr.superlink.main": {"_get_middleware": ()},
        "flwr.superlink.routers.fleet.node_auth": {"verify_signature": ("public_key", "message", "signature")},
        "flwr.supercore.corestate.sql_corestate": {"SqlCoreState._cleanup_expired_task_tokens": ("self",)},
    }
)
"""Replaced names by module, each with its parameters, which are equal in all of :data:`MINORS`."""


def check_version() -> None:
    """Refuse a release of a minor outside :data:`MINORS`."""
    installed = importlib.metadata.version("flwr")
    minor, _, patch = installed.rpartition(".")
    if minor not in MINORS or not patch.isdecimal():
        raise PrivstatsError(
            f"flwr {installed} is installed, this engine is made for {' and '.join(MINORS)}: "
            'pip install "privstats[flower]"'
        )


def is_tested(module: str, name: str) -> bool:
    """Return whether a name of the installed Flower exists with the tested parameters."""
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part, None)
    if isinstance(target, ModuleType):
        return TESTED[module][name] == _MODULE
    return callable(target) and tuple(inspect.signature(target).parameters) == TESTED[module][name]


def replace(module: str, names: Mapping[str, object]) -> Any:
    """Replace names in one of Flower's modules; refuse a missing or different name.

    Args:
        module: its full name, looked up as a module, because a package may hold a function of that name.
        names: the replacement for each name in :data:`TESTED`.
    """
    for name in names:
        if not is_tested(module, name):
            installed = importlib.metadata.version("flwr")
            raise PrivstatsError(
                f"{module} of flwr {installed} has no {name} as in {MINORS[-1]}.0 to be replaced: nothing was started; "
                f'pip install "privstats[flower]" "flwr=={MINORS[-1]}.0"'
            )
    target = importlib.import_module(module)
    for name, ours in names.items():
        owner, _, last = name.rpartition(".")
        setattr(getattr(target, owner) if owner else target, last, ours)
    return target
