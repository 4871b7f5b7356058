"""Mutants that nobody chose: single edits of the library's source, drawn by the date, and the tests that see them."""
