"""All states of small sessions: every order, loss and repeat of messages, and lies of one client or of the server."""
