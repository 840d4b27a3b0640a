"""Makes the package page of the README, whose links lead to files that are not there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")

_INSTALLED = {
    "`prism tour` draws this picture": "`prism tour` draws two pictures",
    "pip install .\n": "pip install prism-statecharts\n",
    "This needs a checkout and Python": "This needs Python",
    "pip install '.[analysis]'": "pip install 'prism-statecharts[analysis]'",
}
"""What the README says of a checkout, and what is true of the package."""


class PackagePage(MetadataHookInterface):
    """Gives the package the README without pictures and links of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the text of the package page."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = _LINK.sub(r"\1", _PICTURE.sub("", text))
        for in_a_checkout, installed in _INSTALLED.items():
            if in_a_checkout not in page:
                raise ValueError(
                    f"README.md no longer has {in_a_checkout!r}: correct docs/package_page.py"
                )
            page = page.replace(in_a_checkout, installed)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
