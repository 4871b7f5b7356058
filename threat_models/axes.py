"""The settings that a sweep of attacks may vary, by name; a module of its own, because the command's help loads it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Axis: TypeAlias = Literal["epsilon", "records", "dropouts", "releases"]
AXES: tuple[Axis, ...] = get_args(Axis)
