"""Sessions of devices: each sends one message over HTTPS and is gone; helpers dial out to the leader."""
