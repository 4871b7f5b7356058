"""Names for packages that extend privstats, by what they add; contributed rooms import these and public names alone.

A *door* is a table of rows that installed packages extend by entry points (docs/how_to_add.md, "A row of a door").
Names for users are in the public rooms, such as ``privstats.plan``. Names for carriers are in
``privstats.engines.carriers``. The modules here list the names that only the author of a row needs. Each name is listed
once, with the module that defines it, and is loaded on first use.

``docs/public_names.txt`` lists these names with their parameters. A name leaves with the next :data:`VERSION` alone.
"""

VERSION = 1
"""Version of the names in these modules: another one where a name has left."""
