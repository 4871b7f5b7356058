"""Points per column and cell of a classifier of declared columns, their bands, and the same as code."""
