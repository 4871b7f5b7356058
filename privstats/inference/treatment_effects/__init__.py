"""Treatment effects: one row or all of them, whether they differ between sites, balance, and the widths to expect."""
