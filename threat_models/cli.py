"""The ``privstats audit`` commands; plugged into the library's command line through an entry point."""

from __future__ import annotations

import typer

__all__ = ["audit"]

audit = typer.Typer(help="Hold measured leakage against the proved limit.", no_args_is_help=True)


@audit.callback()
def _audit() -> None:
    """Hold measured leakage against the proved limit."""
