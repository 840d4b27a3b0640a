"""The published JSON Schema of files of treatments, made from the classes that they are read into.

``python -m prism.science._publish docs`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from prism.runs._settings import ModelSettings, names_of
from prism.runs._settings import settings_of as model_settings_of
from prism.social import Feed
from prism.worlds import SwitchModel, Treatment
from prism.worlds._assignments import CONTROL
from prism.worlds._treatment_tables import OWN, TABLE, treatment_classes
from prism.worlds._treatments import settings_of

SCHEMA_NAME = "treatments.schema.json"

_PLAIN: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_LIMITS: Mapping[str, dict[str, Any]] = {
    "round": {"minimum": 1},
    "share": {"exclusiveMinimum": 0, "maximum": 1},
    "name": {"not": {"const": CONTROL}},
    "number": {"minimum": 1},
    "until": {"minimum": 1},
    "posts": {"minItems": 1},
    "text": {"pattern": r"\S"},
    "parameters": {"minProperties": 1},
    "where": {"additionalProperties": {"anyOf": [_PLAIN, {"type": "array", "items": _PLAIN}]}},
    **{
        name: {"minimum": setting.least}
        for name, setting in model_settings_of(ModelSettings).items()
        if setting.least is not None
    },
}
"""What values may be beyond their types, by the names of keys."""

_TYPES: Mapping[Any, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}


def treatments_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of files of treatments."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Treatments of a prism run",
        "type": "object",
        "properties": {
            TABLE: {"type": "array", "minItems": 1, "items": treatment_schema()},
        },
        "required": [TABLE],
        "additionalProperties": False,
    }


def treatment_schema(*, needs_round: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of one table of a treatment.

    Of kinds that a world of one's own knows (``treatment_classes``) it says no more than the round.

    Args:
        needs_round: Whether the table has to say its round.
    """
    classes = treatment_classes(Feed)
    tables = [_table(kind, cls) for kind, cls in classes.items()]
    tables.append(
        {
            "description": "A treatment of a class that a world of one's own lists.",
            "type": "object",
            "properties": {
                "kind": {"type": "string", "not": {"enum": [*classes, OWN]}},
                "round": {"type": "integer", **_LIMITS["round"]},
            },
            "required": ["kind", "round"],
        }
    )
    tables.append(
        {
            "description": "A treatment of the world's own class.",
            "type": "object",
            "properties": {
                "kind": {"const": OWN},
                "treatment": {"type": "string"},
                "round": {"type": "integer", **_LIMITS["round"]},
            },
            "required": ["kind", "treatment", "round"],
            "additionalProperties": False,
        }
    )
    if not needs_round:
        for table in tables:
            table["required"].remove("round")

    return {"oneOf": tables}


def _table(kind: str, cls: type[Treatment]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    keys = settings_of(cls)
    needed = [
        each.name for each in keys if each.default is MISSING and each.default_factory is MISSING
    ]
    if "parameters" in hints and "parameters" not in needed:
        needed.append("parameters")

    table: dict[str, Any] = {
        "description": (cls.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": {
            "kind": {"const": kind},
            **{each.name: _value(each.name, hints[each.name]) for each in keys},
        },
        "required": ["kind", *needed],
        "additionalProperties": False,
    }
    if cls is SwitchModel:
        table["anyOf"] = [{"required": [name]} for name in names_of(ModelSettings)]

    return table


def _value(name: str, hint: Any) -> dict[str, Any]:
    return {**_type(hint), **_LIMITS.get(name, {})}


def _type(hint: Any) -> dict[str, Any]:
    several = [each for each in get_args(hint) if each is not NoneType]
    if NoneType in get_args(hint):
        return _type(several[0])
    if get_origin(hint) is Literal:
        return {"enum": several}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _type(several[0])}
    if hint in _TYPES:
        return {"type": _TYPES[hint]}

    return {"type": "object"}
