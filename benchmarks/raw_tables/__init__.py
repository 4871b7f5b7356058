"""Raw tables, with texts, gaps and ranges that nobody knows: private models of them beside others'."""
