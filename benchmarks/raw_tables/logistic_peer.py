"""diffprivlib's logistic regression on arrays in a file: ``PYTHON logistic_peer.py ASKED.npz TOLD.npz``.

For an interpreter with diffprivlib and a scikit-learn that it imports; nothing of this library is needed there.
"""

import sys
import warnings

import numpy as np


def main(asked: str, told: str) -> None:
    """Fit on every ``X``, score every ``T``."""
    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")  # of iterations that did not converge
    scores = {}
    with np.load(asked) as given:
        for place in range(sum(name.startswith("X") for name in given)):
            model = LogisticRegression(
                epsilon=float(given["epsilon"]),
                data_norm=float(given["norm"]),
                max_iter=1_000,
                random_state=int(given[f"seed{place}"]),
            )
            model.fit(given[f"X{place}"], given[f"y{place}"])
            scores[f"s{place}"] = model.decision_function(given[f"T{place}"])
    np.savez(told, **scores)


if __name__ == "__main__":
    main(*sys.argv[1:])
