"""Sessions between machines: folders, a host, parties and a loop, over any transport that carries bytes.

No protocol and no cryptography: the transport is not trusted for the sum, the roster is. ``engines.flower``
brings a transport; ``local`` answers from folders of this machine. A shell of ``engines`` like the loopback.
"""
