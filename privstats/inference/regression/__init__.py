"""Regressions: linear, logistic and Poisson, within and between sites, as ratios, and contrasts of cells."""
