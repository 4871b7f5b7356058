"""The command line: ``privstats try | plan | audit | ...``, each with a ``--help`` that is enough to use it."""

from privstats.cli.main import main as main
