"""Regressions: linear, logistic, Poisson, over sites; ratios and contrasts of cells."""
