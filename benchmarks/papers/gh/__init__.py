"""What GH-OFL measures, a module per question; ``benchmarks.papers.gh_ofl`` puts the tables in order."""
