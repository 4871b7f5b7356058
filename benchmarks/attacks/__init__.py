"""What the attacks get out of sums: the facts of the documentation, each from one command."""
