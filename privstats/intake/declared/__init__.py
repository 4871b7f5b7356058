"""Declare a table's columns, and read their values by the declaration alone."""
