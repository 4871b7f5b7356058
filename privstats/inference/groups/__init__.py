"""Groups of records: means and shares of columns by group, as a paper's first table has them."""
