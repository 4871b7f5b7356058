"""What the project costs and what it is worth, measured beside the floor and beside the peers.

Every module with a command prints tables and saves them as one JSON file: ``python -m benchmarks.moments.sums --save``.
``--quick`` runs a small version of the same code, as the tests do.
"""
