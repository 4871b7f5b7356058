"""One client's own head, fitted at the client behind a release: ``head``, over the label shares and adapters of
``adaptation``. Both names of it are names of ``privstats.heads``, too.
"""
