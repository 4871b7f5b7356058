"""Review a plan before anything runs.

The certificate's checker imports nothing of the library: it derives each bound again.
"""
