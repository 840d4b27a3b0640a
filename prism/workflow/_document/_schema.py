"""The published JSON Schema of workflow files, made from the models that the loader reads by.

``python -m prism.workflow._document._schema docs`` writes it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from prism.workflow._document._reading import adapter

SCHEMA_NAME = "workflow.schema.json"


def workflow_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of workflow files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A prism workflow",
        **adapter("document").json_schema(by_alias=True),
    }


def main() -> None:
    """Write the schema into a folder."""
    parser = argparse.ArgumentParser(description="Write the JSON Schema of workflow files.")
    parser.add_argument("folder", type=Path)
    text = json.dumps(workflow_schema(), indent=2) + "\n"
    (parser.parse_args().folder / SCHEMA_NAME).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
