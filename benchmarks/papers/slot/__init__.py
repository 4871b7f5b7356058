"""SLOT-Align: the one-shot methods that it stands in front of, behind features that can be had here."""
