"""The interactive protocol: six steps, pairwise masks, and proven shares of every secret."""
