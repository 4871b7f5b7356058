"""Measure what attacks recover from sums: the facts of the documentation, each from one command."""
