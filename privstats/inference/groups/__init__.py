"""Groups of records: means and shares by group, for a paper's first table."""
