"""Treatment effects: rows, differences between sites, balance and expected widths."""
