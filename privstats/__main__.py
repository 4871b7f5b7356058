"""``python -m privstats`` is the command line."""

from privstats.cli import main

if __name__ == "__main__":
    main()
