"""Moments: how exact sums compare with the bare matrix product."""
