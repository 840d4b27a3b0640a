"""Writes the schemas of the files of experiments: ``python -m prism.science._publish docs``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from prism.files import write_durably
from prism.runs._policy_schema import SCHEMA_NAME as POLICY_NAME
from prism.runs._policy_schema import policy_schema
from prism.science._plan_schema import SCHEMA_NAME as PLAN_NAME
from prism.science._plan_schema import json_schema as plan_schema
from prism.science._treatment_schema import SCHEMA_NAME as TREATMENTS_NAME
from prism.science._treatment_schema import treatments_schema


def write(folder: Path) -> None:
    """Write the schemas into a folder."""
    schemas = {
        PLAN_NAME: plan_schema(),
        TREATMENTS_NAME: treatments_schema(),
        POLICY_NAME: policy_schema(),
    }
    for name, schema in schemas.items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        write_durably(folder / name, text.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
