"""Recognise the condition of a promise, the clause after "while", in a file."""

MAX_CONDITION = 10_000
"""Maximum number of characters of a condition in a file."""


def is_clause(value: object) -> bool:
    """Return whether a file's value can be a condition: a printable text of bounded length, or empty."""
    return isinstance(value, str) and len(value) <= MAX_CONDITION and (value + " ").isprintable()
