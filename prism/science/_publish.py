"""Writes the schemas of the files of experiments: ``python -m prism.science._publish docs``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from prism.files import write_durably
from prism.science._plan_schema import SCHEMA_NAME, json_schema


def write(folder: Path) -> None:
    """Write the schemas into a folder."""
    text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    write_durably(folder / SCHEMA_NAME, text.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
