"""What FedCGS measures, a module per question; ``benchmarks.papers.fedcgs`` puts the tables in order."""
