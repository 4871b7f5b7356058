"""The gallery's examples as Jupyter notebooks, without building the pages.

    python docs/notebooks.py FOLDER

The pages offer the same files for download. Needs the extra ``docs`` (sphinx-gallery).
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
from sphinx_gallery.notebook import jupyter_notebook, save_notebook
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

__all__ = ["write"]

GALLERY = Path(__file__).parent / "gallery"


def write(folder: Path) -> list[Path]:
    """A notebook for every example of the gallery."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for example in sorted(GALLERY.glob("plot_*.py")):
        _, blocks = split_code_and_text_blocks(str(example))
        path = folder / example.with_suffix(".ipynb").name
        save_notebook(jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), str(GALLERY)), path)
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        sys.stdout.write(f"wrote {path}\n")
