"""GH-OFL's printed numbers (ICLR 2026), by table, row and column, and where two of its tables contradict each other.

Not ours: nothing here is measured. A cell takes its number from here and says what it was measured on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = [
    "CONTRADICTIONS",
    "GAUSSIANITY",
    "HEADS",
    "INVARIANCE",
    "LOW_RANK",
    "PAPER",
    "ROUNDS",
    "SCALE",
    "SUBSPACE",
    "TABLE_1",
    "TABLE_2",
    "TABLE_3A",
    "TABLE_3B",
    "TABLE_4",
    "TABLE_4_ENSEMBLE",
    "TABLE_8",
    "TABLE_8_TOP",
]

PAPER = "GH-OFL"

HEADS = ("FedCGS", "GH-NBdiag", "GH-LDA", "GH-QDAfull", "FisherMix", "Proto-Hyper")
"""In the order of its tables; FedCGS stands there as the peer of which they are the continuation."""

TABLE_1: Mapping[str, Sequence[str]] = {
    "CIFAR-10": ("63.95", "78.84", "86.05", "84.40", "84.74", "85.74"),
    "CIFAR-100": ("39.95", "55.51", "63.92", "66.52", "66.99", "64.05"),
    "SVHN": ("57.77", "39.24", "62.16", "55.30", "57.79", "61.97"),
}
"""The same for alpha .05, .10 and .50, by :data:`HEADS`."""

ROUNDS: Mapping[str, Mapping[float, Mapping[str, tuple[str, str, str]]]] = {
    "CIFAR-10": {
        0.05: {
            "FedAvg": ("27.38", "64.13", "77.42"),
            "FedProx": ("27.49", "64.18", "77.54"),
            "SCAFFOLD": ("20.36", "64.58", "73.78"),
        },
        0.1: {
            "FedAvg": ("24.53", "73.08", "84.60"),
            "FedProx": ("32.24", "81.82", "85.68"),
            "SCAFFOLD": ("27.71", "79.04", "88.39"),
        },
        0.5: {
            "FedAvg": ("31.17", "82.62", "91.52"),
            "FedProx": ("35.65", "89.02", "91.74"),
            "SCAFFOLD": ("31.81", "82.69", "91.66"),
        },
    },
    "CIFAR-100": {
        0.05: {
            "FedAvg": ("2.15", "29.19", "62.46"),
            "FedProx": ("2.24", "29.51", "62.76"),
            "SCAFFOLD": ("1.93", "28.87", "61.63"),
        },
        0.1: {
            "FedAvg": ("2.03", "29.92", "63.58"),
            "FedProx": ("2.00", "29.79", "63.68"),
            "SCAFFOLD": ("1.63", "30.96", "64.09"),
        },
        0.5: {
            "FedAvg": ("1.50", "33.41", "68.55"),
            "FedProx": ("1.47", "33.71", "68.61"),
            "SCAFFOLD": ("1.50", "33.28", "68.60"),
        },
    },
    "SVHN": {
        0.05: {
            "FedAvg": ("19.26", "54.94", "78.79"),
            "FedProx": ("12.99", "57.84", "76.30"),
            "SCAFFOLD": ("12.87", "57.45", "75.99"),
        },
        0.1: {
            "FedAvg": ("11.94", "74.16", "87.71"),
            "FedProx": ("11.97", "74.15", "87.88"),
            "SCAFFOLD": ("12.05", "71.45", "87.45"),
        },
        0.5: {
            "FedAvg": ("19.25", "80.73", "92.13"),
            "FedProx": ("19.23", "81.01", "92.17"),
            "SCAFFOLD": ("18.79", "80.80", "92.00"),
        },
    },
}
"""Table 1's multi-round baselines by data, alpha and method: after 1, 10 and 50 rounds."""

TABLE_2 = ("24.4", "25.4", "37.6", "64.3", "40.1", "39.8")
"""CIFAR-100-C, by :data:`HEADS`."""

TABLE_3A: Mapping[str, Sequence[str]] = {
    "efficientnet_b0": ("84.15", "84.89", "90.01", "88.43", "90.02", "89.99"),
    "mobilenet_v2": ("78.11", "79.15", "86.61", "84.67", "86.70", "86.62"),
    "resnet18": ("76.58", "77.58", "86.17", "84.76", "86.04", "85.95"),
    "resnet50": ("81.06", "81.96", "91.26", "86.68", "91.27", "91.23"),
    "vgg16": ("66.08", "67.83", "81.39", "77.65", "81.71", "81.32"),
}
TABLE_3B: Mapping[str, Sequence[str]] = {
    "CIFAR-10": ("77.20", "78.85", "86.26", "85.12", "86.56", "86.31"),
    "CIFAR-100": ("53.52", "55.51", "64.12", "64.88", "66.42", "65.27"),
    "SVHN": ("34.84", "39.24", "62.88", "57.16", "62.26", "62.35"),
    "CIFAR-100-C": ("13.53", "15.11", "25.99", "46.54", "29.08", "38.64"),
}

TABLE_4: Mapping[str, Sequence[str]] = {
    "AG_NEWS": ("88.96", "89.14", "88.87"),
    "DBPEDIA-14": ("98.33", "97.21", "98.33"),
    "SST-2": ("82.68", "70.53", "82.80"),
    "BANKING77": ("77.60", "73.64", "80.26"),
    "CLINC150": ("84.80", "82.89", "85.69"),
}
"""Best Gaussian head, FisherMix, Proto-Hyper; the same for alpha .5 and .01."""

TABLE_4_ENSEMBLE: Mapping[str, Mapping[float, str]] = {
    "AG_NEWS": {0.5: "85.64", 0.01: "25.00"},
    "BANKING77": {0.5: "30.62", 0.01: "5.32"},
    "CLINC150": {0.5: "43.30", 0.01: "3.66"},
}
"""The client ensemble, by alpha, on the sets that are at hand."""

LOW_RANK: Mapping[str, Sequence[str]] = {
    "NB-diag": ("49.68", "83.86", "92.33", "1.0", "1.0"),
    "LDA": ("59.46", "88.93", "98.32", "1.0", "1.1"),
    "QDA_full": ("48.20", "68.20", "92.33", "16.0", "4.0"),
    "DLR-QDA (r=4)": ("49.99", "67.08", "92.32", "2.0", "1.4"),
    "DLR-QDA (r=8)": ("47.77", "56.53", "92.35", "3.0", "1.6"),
    "DLR-QDA (r=16)": ("42.01", "38.32", "92.19", "5.0", "2.0"),
}
"""Table 5: accuracy on CIFAR-100, AG_NEWS and DBPEDIA-14, memory and time against naive Bayes."""

INVARIANCE: Mapping[str, Mapping[int, str]] = {
    "alpha = 0.5": {10: "87.4", 20: "87.6", 30: "87.5", 40: "87.3", 50: "87.2", 100: "87.3"},
    "alpha = 0.1": {10: "87.1", 20: "87.2", 30: "87.0", 40: "86.9", 50: "86.8", 100: "86.9"},
    "alpha = 0.05": {10: "86.1", 20: "86.3", 30: "86.2", 40: "86.1", 50: "86.0", 100: "86.1"},
    "#C = 2": {10: "86.9", 20: "87.0", 30: "86.8", 40: "86.7", 50: "86.6", 100: "86.7"},
    "#C = 1": {10: "86.1", 20: "86.0", 30: "85.9", 40: "85.8", 50: "85.8", 100: "85.9"},
}
"""Table 7, CIFAR-10, the best head, by the partition and K; #C is the number of classes a client has."""

SCALE = "1.8, from 85.8 to 87.6"

TABLE_8_TOP: Mapping[str, tuple[str, str]] = {
    "GH-OFL-NB (diag)": ("1.1", "0.85"),
    "GH-OFL-LDA": ("1.2", "0.90"),
    "GH-OFL-QDA-full": ("3.7", "3.8"),
    "GH-OFL-DLR-QDA (r=8)": ("1.6", "1.2"),
    "GH-OFL-FisherMix": ("1.4", "1.0"),
    "GH-OFL-Proto-Hyper": ("1.3", "0.9"),
}
"""GPU minutes and GB on CIFAR-100."""

TABLE_8: Mapping[int, tuple[str, Mapping[int, tuple[str, str]], tuple[str, str]]] = {
    512: ("NABD", {100: ("913", "8.92"), 4: ("529", "5.17")}, ("58.4", "89.1")),
    256: ("NAD", {100: ("200", "1.96"), 4: ("8", "0.08")}, ("56.1", "88.6")),
    128: ("NA", {100: ("50", "0.49"), 4: ("2", "0.02")}, ("53.2", "87.8")),
}
"""By RP dimension: statistics; by C the upload in KB and of ten clients in MB; accuracy on CIFAR-100 and AG_NEWS."""

GAUSSIANITY: Mapping[str, Sequence[str]] = {
    "CIFAR-10": ("1.69", "2.34", "4.22", "7.61"),
    "CIFAR-100": ("1.91", "2.61", "5.64", "10.52"),
    "SVHN": ("2.35", "4.09", "11.05", "25.27"),
    "AG_NEWS": ("0.17", "0.36", "0.24", "0.55"),
    "DBPedia-14": ("0.32", "0.64", "0.60", "1.21"),
    "SST-2": ("0.27", "0.50", "0.57", "0.86"),
}
"""Table 9: mean and 90th percentile of |skewness|, then of |excess kurtosis|."""

SUBSPACE: Mapping[str, tuple[str, Mapping[int, tuple[str, str]]]] = {
    "CIFAR-10": ("86.26", {4: ("69.55", "0.71"), 8: ("82.86", "0.97"), 16: ("86.26", "1.00")}),
    "AG_NEWS": ("90.28", {128: ("90.29", "0.99")}),
    "CIFAR-100-C": ("39.37", {128: ("39.35", "0.99")}),
    "CIFAR-100": ("64.12", {4: ("19.02", "0.26"), 32: ("53.25", "0.77"), 128: ("64.15", "1.00")}),
    "SVHN": ("62.88", {4: ("51.98", "0.72"), 8: ("62.12", "0.97"), 16: ("62.86", "1.00")}),
}
"""Table 10 and section D.2: LDA in all features, then by k accuracy in the Fisher subspace and its share of energy."""

CONTRADICTIONS: Sequence[tuple[str, str, str, str, str]] = (
    ("FedCGS, ResNet-18, CIFAR-10", "Table 1: 63.95", "Table 3a: 76.58", "the same backbone, data and head", "12.6"),
    (
        "LDA, CIFAR-10 / CIFAR-100 / SVHN",
        "Table 3b, Places365: 86.26 / 64.12 / 62.88",
        "Table 10, ImageNet: 86.26 / 64.12 / 62.88",
        "two backbones cannot agree in all digits",
        "0",
    ),
    (
        "NBdiag, CIFAR-100 / SVHN",
        "Table 1, ImageNet: 55.51 / 39.24",
        "Table 3b, Places365: 55.51 / 39.24",
        "two backbones cannot agree in all digits",
        "0",
    ),
    (
        "what (A, D, N) allow at 256 dimensions, CIFAR-100",
        "Table 5, NB-diag: 49.68",
        "Table 8, RP-256: 56.1",
        "naive Bayes is the only head of these sums",
        "6.4",
    ),
    (
        "LDA's statistics, CIFAR-100",
        "Table 5, 256 dimensions: 59.46",
        "Table 8, 512 dimensions: 58.4",
        "twice the dimensions and less accuracy",
        "-1.1",
    ),
    (
        "best head, CIFAR-10, over K and alpha",
        "Table 7: 85.8",
        "Table 7: 87.6",
        "sums that do not depend on the partition give one number",
        "1.8",
    ),
    (
        "QDAfull, CIFAR-100 clean and corrupted at severity 5",
        "Table 1: 66.52",
        "Table 2: 64.3",
        "LDA loses 26 points where QDA loses 2",
        "-2.2",
    ),
    (
        "QDA_full beside NB-diag in memory",
        "Table 5: 16.0",
        "its own formula at d = 256: d / 2 = 128",
        "C d^2 against 2 C d numbers",
        "112",
    ),
)
"""Subject, one printed number, another, why they cannot both hold, and the gap."""
