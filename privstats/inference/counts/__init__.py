"""Count tables: shares, quantiles, tests, survival curves and the log-rank test."""
