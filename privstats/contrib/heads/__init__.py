"""Heads of classes that few studies need. Entry points register each as a name of ``privstats.heads``."""
