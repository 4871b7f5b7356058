"""Prove that a vector shared between a leader and helpers is one that an honest client could send.

A client proves, every member answers linear functions of its own share, and the leader decides on the answers' sums.
``secagg.statements`` connects this to the machines; docs/proofs.md has the argument.

=========================================  ===================================================
topic                                      module
=========================================  ===================================================
field arithmetic, the vectors' group       ``field``, ``field_streams`` (masking)
a session's or a plan's statement          ``claims``, ``of_plans``
interface and lengths of a statement       ``statement``
statements                                 ``moments`` (over ``grams``), ``norm``, ``counts``
products, bits, signed sums                ``gadgets``
hashes and derivations                     ``transcript``
the client's side, the members' side       ``prover``, ``verifier``
=========================================  ===================================================
"""
