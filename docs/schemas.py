"""Writes the schemas of all files that people write by hand.

Run it after a change of what such files may hold: ``python docs/schemas.py``.
"""

import json
from pathlib import Path

from prism.programs.thinking._config import SCHEMA_NAME as COGNITION
from prism.programs.thinking._config import config_schema
from prism.programs.yaml._file import SCHEMA_NAME as WORKFLOW
from prism.programs.yaml._file import workflow_schema
from prism.science._plan_file import SCHEMA_NAME as PLAN
from prism.science._plan_file import plan_schema

SCHEMAS = {
    WORKFLOW: workflow_schema(),
    COGNITION: config_schema(),
    PLAN: plan_schema(),
}


def main() -> None:
    """Write the schemas beside this file."""
    for name, schema in SCHEMAS.items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
