"""Estimates from noisy sums: functions of arrays and known noise levels, without plans, releases or randomness."""
