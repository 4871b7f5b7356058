"""The interactive protocol: five steps, pairwise masks, and shares of every secret among those who stay."""
