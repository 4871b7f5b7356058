"""The papers' own tables, run again: every published number beside ours, and why where they differ."""
