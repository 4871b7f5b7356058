"""What a sweep of attacks may vary, by name; alone, because the help of the command says it and loads nothing else."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

__all__ = ["AXES", "Axis"]

Axis: TypeAlias = Literal["epsilon", "records", "dropouts", "releases"]
AXES: tuple[Axis, ...] = get_args(Axis)
