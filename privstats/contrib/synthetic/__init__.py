"""Synthetic rows drawn from masked, noisy count tables of many parties.

``course`` plans the sessions: one-way tables, a screening of all pairs, then the pairs that matter most. ``rows`` reads
their releases and draws rows; it reads no record. ``columns`` declares what is counted, unlisted codes included.
``choice`` selects the pairs, ``junction_tree`` computes marginals of a graphical model, and ``model`` fits one.
"""
