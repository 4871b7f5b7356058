"""One-shot federated ridge regression (Alsulaimawi): its data, its baselines, its private version, and its tables."""
