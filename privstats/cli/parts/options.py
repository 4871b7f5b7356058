"""Options that several commands share, with their help; the module imports nothing for them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

__all__ = ["Decimal", "Encoding", "Json", "Separator", "SignedBy", "Split", "Target"]

_DIALECT = "How a CSV file is written"  # a list of its own in the help of every command that reads one

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
SignedBy: TypeAlias = Annotated[
    str | None, typer.Option(help="The public key that must have signed it: hex, or a file.", metavar="KEY")
]
Split: TypeAlias = Annotated[
    float | None, typer.Option(help="Of X and y, or of a table: the share of the records to score on, 0 to 1.")
]
Target: TypeAlias = Annotated[
    str | None, typer.Option(help="Of a CSV or Parquet file: the column that is predicted.", metavar="COLUMN")
]
Encoding: TypeAlias = Annotated[
    str, typer.Option(help="How its text is written, such as cp1252.", rich_help_panel=_DIALECT)
]
Separator: TypeAlias = Annotated[
    str,
    typer.Option(help="What parts its fields, one of , ; | : or tab.", metavar="CHARACTER", rich_help_panel=_DIALECT),
]
Decimal: TypeAlias = Annotated[
    str, typer.Option(help="Its decimal mark, . or ,.", metavar="CHARACTER", rich_help_panel=_DIALECT)
]
