"""What logs hold, against the schema of events in its strict form, which knows all keys."""

from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema

from prism.runlog._events import json_schema


def faults_of(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return in what events are not of the schema: unknown or missing keys, and wrong values."""
    validator = jsonschema.Draft202012Validator(json_schema(strict=True))
    return [error.message for event in events for error in validator.iter_errors(event)]
