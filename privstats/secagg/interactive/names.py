"""The names of the protocol's six steps and of its two ends, in order. Data only; under everything in this room."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["STEP_NAMES", "UPLOAD_STEP", "StepName"]

StepName: TypeAlias = Literal["advertise", "share", "check", "mask", "agree", "unmask", "done", "failed"]

STEP_NAMES: tuple[StepName, ...] = ("advertise", "share", "check", "mask", "agree", "unmask")
UPLOAD_STEP: StepName = "mask"
