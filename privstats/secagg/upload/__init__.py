"""One upload: a client sends one report and is gone; a leader and helpers compute the exact sum from the reports."""
