"""Names of files, which need not be text."""

from __future__ import annotations

import re
from os import PathLike

# what Python makes of bytes that are not UTF-8 (PEP 383)
_UNDECODED = re.compile("[\udc80-\udcff]")


def shown_path(path: PathLike[str] | str) -> str:
    r"""Return a path, or a text with one, with ``\xe9`` for bytes that are not UTF-8."""
    return _UNDECODED.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", str(path))
