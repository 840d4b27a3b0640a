"""Writes the schemas of workflow files and of configurations of thinking agents.

Run it after a change of what such files may hold: ``python docs/schemas.py``.
"""

import json
from pathlib import Path

from prism.cognition._config._reading import SCHEMA_NAME as COGNITION
from prism.cognition._config._reading import config_schema
from prism.workflow._document._declarations import SCHEMA_NAME as WORKFLOW
from prism.workflow._document._declarations import workflow_schema


def main() -> None:
    """Write the schemas beside this file."""
    for name, schema in ((WORKFLOW, workflow_schema()), (COGNITION, config_schema())):
        text = json.dumps(schema, indent=2) + "\n"
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
