"""Measure the project's costs and its value, next to the floor and next to the peers.

Every module with a command prints tables and saves them as one JSON file: ``python -m benchmarks.moments.sums --save``.
``--quick`` runs a small version of the same code, as the tests do.
"""
