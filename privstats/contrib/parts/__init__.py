"""Work in parts on a Dask cluster of one's own: a party's records, and a leader's settled parts, over an object store.

``dask`` has both tasks, ``part_store`` what a worker gets of a leader, ``part_sums`` the thread that hands it out.
"""
