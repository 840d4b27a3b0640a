"""Writes the schemas of the files of experiments: ``python -m prism.science._publish docs``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from prism.files import write_durably
from prism.runs._policy_file import Policy
from prism.runs._policy_schema import policy_schema
from prism.science._plan_file import plan_schema
from prism.social import Feed
from prism.worlds._treatment_tables import treatments_schema


def published() -> dict[str, dict[str, Any]]:
    """Return the published schemas by their file names."""
    return {
        "plan.schema.json": plan_schema("plan.schema.json"),
        "treatments.schema.json": treatments_schema(Feed),
        "policy.schema.json": policy_schema(Policy),
    }


def write(folder: Path) -> None:
    """Write the schemas into a folder."""
    for name, schema in published().items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        write_durably(folder / name, text.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
