"""Makes the package page of the README, whose links lead to files that are not there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")


class PackagePage(MetadataHookInterface):
    """Gives the package the README without pictures and links of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the text of the package page."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = _LINK.sub(r"\1", _PICTURE.sub("", text)).replace("the picture above", "a picture")
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
