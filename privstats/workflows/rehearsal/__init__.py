"""A rehearsal of a study on files that one may look at."""
