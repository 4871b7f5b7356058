"""Other systems and ours on the same features and the same split: one file per peer, one interface for all."""
