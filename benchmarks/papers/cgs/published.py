"""FedCGS's printed numbers (AAAI 2025), by table, row and column.

Not ours: nothing here is measured. Figures 2, 3 and 4 print no numbers in their text, so cells of theirs have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["METHODS", "PAPER", "TABLE_1", "TABLE_2", "TABLE_3", "TABLE_4", "UPLOADS"]

PAPER = "FedCGS"

METHODS = ("FedAvg (one-shot)", "Ensemble", "DENSE", "Co-Boosting", "FedPFT", "FedCGS")

TABLE_1: Mapping[str, Mapping[float, Sequence[str]]] = {
    "CIFAR10": {
        0.05: ("13.97±1.26", "38.81±0.89", "31.26±0.73", "44.37±0.42", "56.08±0.49", "63.95±0.00"),
        0.1: ("27.28±1.34", "57.29±0.54", "56.21±0.24", "60.41±0.67", "56.43±0.23", "63.95±0.00"),
        0.5: ("51.91±0.46", "66.00±0.42", "62.42±0.43", "67.43±0.36", "56.80±0.18", "63.95±0.00"),
    },
    "CIFAR100": {
        0.05: ("17.57±0.58", "22.43±0.63", "14.31±0.61", "20.30±0.76", "36.79±0.21", "39.95±0.00"),
        0.1: ("21.46±0.38", "28.07±0.47", "17.21±0.36", "24.63±0.64", "37.16±0.34", "39.95±0.00"),
        0.5: ("35.26±0.22", "37.89±0.49", "26.49±0.32", "34.43±0.45", "37.95±0.27", "39.95±0.00"),
    },
    "SVHN": {
        0.05: ("16.75±0.63", "42.26±0.54", "37.49±0.42", "41.90±0.38", "42.55±0.24", "57.77±0.00"),
        0.1: ("24.88±0.39", "53.34±0.23", "51.53±0.37", "57.13±0.28", "43.03±0.17", "57.77±0.00"),
        0.5: ("44.39±0.46", "82.93±0.29", "77.44±0.26", "84.65±0.24", "43.84±0.42", "57.77±0.00"),
    },
}
"""By data set and alpha, in the order of :data:`METHODS`."""

TABLE_2: Mapping[str, tuple[str, str]] = {
    "PACS": ("57.36±1.65", "62.14±0.00"),
    "OfficeHome": ("57.68±0.72", "60.12±0.00"),
}
"""Averages over target domains: FedPFT, FedCGS."""

TABLE_3: Mapping[str, Mapping[str, str]] = {
    "Local-only": {"CIFAR10": "76.25±0.26", "CIFAR100": "54.06±0.28", "SVHN": "80.73±0.37"},
    "FedAvg": {"CIFAR10": "75.70±0.58", "CIFAR100": "48.17±0.51", "SVHN": "81.16±0.41"},
    "FedAvg-FT": {"CIFAR10": "80.47±0.32", "CIFAR100": "60.97±0.24", "SVHN": "84.03±0.23"},
    "FedProto": {"CIFAR10": "78.07±0.76", "CIFAR100": "55.97±0.72", "SVHN": "82.14±0.57"},
    "FedCGS": {"CIFAR10": "78.30±0.39", "CIFAR100": "55.56±0.61", "SVHN": "81.20±0.45"},
}

TABLE_4: Mapping[str, Mapping[str, str]] = {
    "ResNet18": {"CIFAR10": "63.95", "CIFAR100": "39.95", "SVHN": "57.77"},
    "ResNet50": {"CIFAR10": "70.32", "CIFAR100": "46.08", "SVHN": "60.31"},
    "MobileNetV2": {"CIFAR10": "57.87", "CIFAR100": "24.39", "SVHN": "37.49"},
    "EfficientNetB0": {"CIFAR10": "56.80", "CIFAR100": "31.20", "SVHN": "53.80"},
}

UPLOADS: Mapping[str, tuple[str, str]] = {
    "FedAvg / DENSE / Co-Boosting": ("11181642", "the weights of a ResNet-18"),
    "FedPFT": ("102500", "(2 d + 1) K_g C, K_g = 10"),
    "FedCGS": ("267274", "(C + d) d + C"),
}
"""Numbers that a client sends at d = 512 and C = 10, and how they are counted."""
