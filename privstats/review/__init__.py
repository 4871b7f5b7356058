"""Review a plan before anything runs: facts, the difference of two plans, the certificate.

The certificate's checker imports nothing of the library: it derives each bound again.
"""
