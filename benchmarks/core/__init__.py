"""The core: how much of it one session runs, and how often one change touches it and a contributed room."""
