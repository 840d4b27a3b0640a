"""Writes the schemas of the files of experiments: ``python -m prism.science._publish docs``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from prism.files import write_durably
from prism.runs._policy_schema import SCHEMA as POLICY_SCHEMA
from prism.runs._policy_schema import SCHEMA_NAME as POLICY_NAME
from prism.science._plan_schema import SCHEMA_NAME, json_schema


def write(folder: Path) -> None:
    """Write the schemas into a folder."""
    for name, schema in {SCHEMA_NAME: json_schema(), POLICY_NAME: POLICY_SCHEMA}.items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        write_durably(folder / name, text.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
