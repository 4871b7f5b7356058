"""What people do with a plan before they deploy it: choose its bounds, try it, score it, show it.

One floor of rooms that do not import each other upwards: ``simulate`` runs a whole cohort in one process, ``suggest``
reads clip norm and grid off public data, ``sweep`` and ``demo`` score heads, ``report`` writes a page. None of them is
needed by a party or a server of a real session.
"""
