"""Write complete files, read bounded ones, store results, draw random bits, show progress, import optional packages.

docs/how_to_add.md states under "The extension interface" which module has the names of which door.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats import optional_dependencies as optional_dependencies
    from privstats.estimates.algebra import Array as Array
    from privstats.files.atomic import atomic_write as atomic_write
    from privstats.files.atomic import read_bounded as read_bounded
    from privstats.files.atomic import write_new as write_new
    from privstats.files.decoding import from_json as from_json
    from privstats.files.decoding import from_msgpack as from_msgpack
    from privstats.files.envelope import PathLike as PathLike
    from privstats.files.result_cache import ResultCache as ResultCache
    from privstats.files.signing import Verifier as Verifier
    from privstats.files.text import json_text as json_text
    from privstats.files.text import toml_tables as toml_tables
    from privstats.printable import at_most as at_most
    from privstats.printable.command_line import command_line as command_line
    from privstats.progress import progress_bar as progress_bar
    from privstats.randomness import Generator as Generator
    from privstats.randomness import seeded as seeded
    from privstats.secagg.keys import Entropy as Entropy
    from privstats.secagg.wire import HASH_BYTES as HASH_BYTES
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats": ["optional_dependencies"],
            "privstats.estimates.algebra": ["Array"],
            "privstats.files.atomic": ["atomic_write", "read_bounded", "write_new"],
            "privstats.files.decoding": ["from_json", "from_msgpack"],
            "privstats.files.envelope": ["PathLike"],
            "privstats.files.result_cache": ["ResultCache"],
            "privstats.files.signing": ["Verifier"],
            "privstats.files.text": ["json_text", "toml_tables"],
            "privstats.printable": ["at_most"],
            "privstats.printable.command_line": ["command_line"],
            "privstats.progress": ["progress_bar"],
            "privstats.randomness": ["Generator", "seeded"],
            "privstats.secagg.keys": ["Entropy"],
            "privstats.secagg.wire": ["HASH_BYTES"],
        },
    )
