"""The command line: ``privstats try | plan | audit | ...``, each with a ``--help``."""

from privstats.cli.main import main as main
