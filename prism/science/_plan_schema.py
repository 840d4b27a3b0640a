"""What a plan may say: its JSON Schema, by which plans are read, too.

``python -m prism.science._publish docs`` writes the schema into the documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, get_args

from prism.runs import ModelOptions, WriterOptions
from prism.runs._settings import Server, Setting, settings_of
from prism.science._treatment_schema import treatment_schema
from prism.statechart._engine.arguments import did_you_mean

SCHEMA_NAME = "plan.schema.json"

Schema = Mapping[str, Any]
Keys = tuple[str | int, ...]
"""Where something stands in a plan."""


def _text(meaning: str) -> Schema:
    return {"type": "string", "description": meaning}


def _texts(meaning: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": meaning}


def _count(meaning: str) -> Schema:
    return {"type": "integer", "minimum": 1, "description": meaning}


def _table(properties: Mapping[str, Schema], meaning: str, *needed: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": list(needed)} if needed else {}),
        "description": meaning,
    }


_SCALARS = ["number", "string", "boolean"]
_VALUE: Schema = {"type": [*_SCALARS, "array"], "items": {"type": _SCALARS}}

_OF_BUDGET = ("max_calls", "max_tokens", "deadline")
_TYPES: Mapping[Any, Schema] = {
    str: {"type": "string"},
    Path: {"type": "string"},
    int: {"type": "integer", "minimum": 0},
    float: {"type": "number", "minimum": 0},
    bool: {"type": "boolean"},
}


def _of_model() -> dict[str, Schema]:
    settings = settings_of(ModelOptions).values()
    return {
        "server": {"type": "string", "enum": list(get_args(Server))},
        "policy": _text("A policy file that decides instead of a model."),
        "models": _text("A file of models: a default, and tables for kinds of agents."),
        **{
            each.name: _of_setting(each)
            for each in settings
            if each.name not in ("server", *_OF_BUDGET)
        },
    }


def _of_setting(setting: Setting) -> Schema:
    if setting.repeats:
        return {"type": ["string", "array"], "items": {"type": "string"}}
    if setting.choices:
        return {"type": "string", "enum": list(setting.choices)}

    return dict(_TYPES[setting.type])


_REASONER = _table(
    _of_model(), "The model that decides, with the settings of prism.runs.ModelOptions."
)
_WRITER = _table(
    {
        "model": _text("Another model than the one that decides, on the same servers."),
        "max_length": _count("Most characters of a text."),
        "language": _text("Language of the texts."),
    },
    "Have the model write the texts, too.",
)
_BUDGET = _table(
    {
        "max_calls": _count("Requests that all runs may make together."),
        "max_tokens": _count("Tokens that all runs may use together."),
        "deadline": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds from the first question of any run.",
        },
    },
    "What all runs together may spend on models.",
)
_TREATMENTS = _texts("Treatments of the world and their rounds, such as warning@12.")
_TREATMENT: Schema = {
    "type": "array",
    "items": {"type": "object", "$ref": "#/$defs/treatment"},
    "description": "Treatments with a kind and a round, as in files of treatments.",
}
_PARAMETERS: Schema = {
    "type": "object",
    "additionalProperties": _VALUE,
    "description": "Parameters of the world by name.",
}
_SIZES = {
    "agents": {
        "type": ["integer", "string"],
        "minimum": 1,
        "description": "How many agents there are, or a file of them.",
    },
    "rounds": _count("Number of rounds."),
    "ticks": _count("Ticks in a round."),
    "preset": _text("Preset of the world's parameters."),
}
_ARM = _table(
    {
        "name": _text("What the arm is called in tables and folders."),
        **_SIZES,
        "parameters": _PARAMETERS,
        "treatments": _TREATMENTS,
        "treatment": _TREATMENT,
        "reasoner": _REASONER,
    },
    "An arm of the experiment: what is different in it.",
    "name",
)
_BOUND: Schema = {
    "type": ["array", "object"],
    "items": {"type": "number"},
    "minItems": 2,
    "maxItems": 2,
    "properties": {
        "least": {"type": "number", "description": "The least value."},
        "most": {"type": "number", "description": "The largest value."},
        "scale": {
            "type": "string",
            "enum": ["linear", "log"],
            "description": "Whether values, or their logarithms, are spread evenly.",
        },
        "step": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Take only the least value and those so far apart.",
        },
    },
    "required": ["least", "most"],
    "additionalProperties": False,
}
VARIED_SETTINGS = tuple(_SIZES)
"""What may be varied besides parameters of the world."""

_VARY: Schema = {
    "type": "object",
    "properties": {
        name: {"type": "array", "items": each, "minItems": 1} for name, each in _SIZES.items()
    },
    "additionalProperties": {"type": "array", "items": _VALUE, "minItems": 1},
    "description": "Values of parameters, agents, rounds, ticks, preset; all combinations are run.",
}

PLAN: Schema = _table(
    {
        "name": _text("What the plan is called."),
        "description": _text("What it is for."),
        "world": _text("social, a short name, package.module:Name, or file.py:Name."),
        **_SIZES,
        "posts": _text("File of posts that the social feed begins with."),
        "keep": _texts("Columns of the file of agents to keep."),
        "seeds": {
            "type": ["integer", "array"],
            "minimum": 1,
            "items": {"type": "integer"},
            "minItems": 1,
            "description": "How many seeds, from 0 on, or a list of them.",
        },
        "parameters": _PARAMETERS,
        "vary": _VARY,
        "treatments": _TREATMENTS,
        "treatment": _TREATMENT,
        "arm": {"type": "array", "items": _ARM, "minItems": 1, "description": "The arms."},
        "reasoner": _REASONER,
        "writer": _WRITER,
        "budget": _BUDGET,
        "bounds": {
            "type": "object",
            "additionalProperties": _BOUND,
            "description": "Bounds of the parameters that a sensitivity analysis samples.",
        },
        "measures": _texts("Columns of the results that a sensitivity analysis explains."),
    },
    "A plan of an experiment: parameters, arms and seeds.",
)
assert {"max_length", "language"} <= set(WriterOptions.__dataclass_fields__)


def json_schema() -> dict[str, Any]:
    """Return the schema of a plan, JSON Schema draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_NAME,
        "title": "A plan of prism batch",
        **PLAN,
        "$defs": {"treatment": treatment_schema()},
    }


def mistakes(value: Any, schema: Schema = PLAN, keys: Keys = ()) -> Iterator[tuple[Keys, str]]:
    """Yield what is wrong with a value, and where: where the schema would refuse it.

    Args:
        value: The value.
        schema: What it may be.
        keys: Where it stands.
    """
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_IS[kind](value) for kind in kinds):
        wanted = " or ".join(_WORDS[kind] for kind in kinds)
        yield keys, f"must be {wanted}, got {value!r}"
    elif isinstance(value, Mapping):
        yield from _in_table(value, schema, keys)
    elif isinstance(value, list):
        yield from _in_list(value, schema, keys)
    else:
        yield from _in_scalar(value, schema, keys)


def _in_table(value: Mapping[str, Any], schema: Schema, keys: Keys) -> Iterator[tuple[Keys, str]]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name, inner in value.items():
        if name in known:
            yield from mistakes(inner, known[name], (*keys, name))
        elif others is False:
            yield (*keys, name), f"is unknown{_meant(name, known)}"
        else:
            yield from mistakes(inner, others, (*keys, name))

    for name in schema.get("required", ()):
        if name not in value:
            yield keys, f"needs a {name}"


def _meant(name: str, known: Mapping[str, Schema]) -> str:
    if name in _OF_BUDGET:
        return "; it holds for all runs together: give it in [budget]"
    return did_you_mean(name, list(known))


def _in_list(value: list[Any], schema: Schema, keys: Keys) -> Iterator[tuple[Keys, str]]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        wanted = f"{least} items" if least == most else f"{least} item or more"
        yield keys, f"must have {wanted}, got {len(value)}"

    for place, item in enumerate(value):
        yield from mistakes(item, schema.get("items", {}), (*keys, place))


def _in_scalar(value: Any, schema: Schema, keys: Keys) -> Iterator[tuple[Keys, str]]:
    is_number = _IS["number"](value)
    if "enum" in schema and value not in schema["enum"]:
        yield keys, f"must be one of {', '.join(schema['enum'])}, got {value!r}"
    elif is_number and "minimum" in schema and value < schema["minimum"]:
        yield keys, f"must be {schema['minimum']} or more, got {value}"
    elif is_number and "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield keys, f"must be above {schema['exclusiveMinimum']}, got {value}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


_IS: Mapping[str, Any] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
_WORDS: Mapping[str, str] = {
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a table",
}
