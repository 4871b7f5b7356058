"""Work in parts on one's own Dask cluster: a party's records (``dask``), or a leader's settled parts
(``part_sums``).
"""
