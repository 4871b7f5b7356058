"""Count tables: shares, quantiles and tests of them, survival curves and the log-rank test."""
