"""One upload: a client speaks once and is gone; a leader and helpers turn what was sent into the exact sum."""
