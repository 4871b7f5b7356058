"""Sessions of devices over plain HTTPS: who is invited, and what carries their one message."""
