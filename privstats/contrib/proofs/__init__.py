"""Prove that a vector shared between a leader and helpers is one that an honest client could send.

Numbers alone: no schema, no noise, no machine. A client proves, every member answers linear functions of its own share,
and the leader decides on the answers' sums. ``claims`` names a statement; machines ask it, as described in
``secagg.statements``, and continue with its masking scheme, ``field_streams``.

=========================================================  =============================================================
what                                                       where
=========================================================  =============================================================
a product, a sum or a keystream in the field               ``field``, with the group of the summed vectors
which statement a plan's sums have                         ``claims``; of a plans: ``of_plans``
what a statement is, how long its report is                ``statement``, which checks its field's room
what is proved of class sums, sums by class, a regression  ``moments``, over ``grams`` and the witness there
what is proved of a gradient, of tables of counts          ``norm``, ``counts``
products, bits, signed sums: sent, answered, accepted      ``gadgets``
what is hashed and derived                                 ``transcript``; the orders of report and query: ``verifier``
the client's side, the members' side                       ``prover``, ``verifier``
=========================================================  =============================================================

A rule has its double in ``tests/contrib/proofs/test_doubles.py``: the attack works where just that rule is
missing. docs/proofs.md has the whole argument.
"""
