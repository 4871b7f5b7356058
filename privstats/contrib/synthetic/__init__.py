"""Draw synthetic rows from masked, noisy count tables of many parties."""
