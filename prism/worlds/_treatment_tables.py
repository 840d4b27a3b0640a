"""Treatments as tables in a file or a plan: declared by their classes, read and published.

pydantic reads the tables, so this module is imported only where there are any.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pydantic
from pydantic import ConfigDict, create_model

from prism.errors import InputError
from prism.files._declarations import Declaration, Listed, Optionally, meant, part_schema_of, shaped
from prism.files._source import Problems, Source, Where
from prism.llm._settings import AgentSettings, settings_by_key
from prism.llm._settings import settings_of as model_settings_of
from prism.worlds._kinds import parts_of
from prism.worlds._treatments import SetParameters, SwitchModel, Treatment, key_of, settings_of
from prism.worlds._world import World

OWN = "own"
"""The kind of a table that names a treatment of the world's own class."""

TABLE = "treatment"
"""The name of the tables in a file."""

OF_ALL: Sequence[type[Treatment]] = (SetParameters, SwitchModel)
"""Ready-made treatments of every world."""


class _Table(Declaration):
    # the user's own class of treatments may have fields of any type
    model_config = ConfigDict(allow_inf_nan=True, arbitrary_types_allowed=True)


class _Own(Declaration):
    """A treatment of the world's own class."""

    kind: Literal["own"]
    treatment: str
    round: int = pydantic.Field(ge=1)


class _Other(Declaration):
    """A treatment of a class that the world lists in ``treatment_classes``."""

    model_config = ConfigDict(extra="allow")

    kind: str
    round: int = pydantic.Field(ge=1)


def treatment_classes(cls: type[World[Any]]) -> dict[str, type[Treatment]]:
    """Return the classes of treatments that a world accepts, by kind."""
    own = [each for base in cls.__mro__ for each in vars(base).get("treatment_classes", ())]
    return {each.kind: each for each in (*OF_ALL, *own)}


def read_treatment_file(
    path: Path, cls: type[World[Any]], *, round_number: int | None = None
) -> list[str | Treatment]:
    """Read a TOML file of treatments: a list of tables ``[[treatment]]``.

    Args:
        path: The file.
        cls: The world's class.
        round_number: The round of tables that do not name theirs. If None, every table must.

    Raises:
        InputError: If it cannot be read or is invalid; the message lists all problems by line and
            key.
    """
    source = Source.read(path, "toml")
    problems = Problems(source)
    for name in source.value:
        if name != TABLE:
            problems.add((name,), f"is unknown: the file must contain tables [[{TABLE}]]")

    found: list[str | Treatment] = []
    tables = source.value.get(TABLE)
    if isinstance(tables, list) and tables:
        found = read_treatments(
            tables, cls, problems, lambda place: (TABLE, place), round_number=round_number
        )
    else:
        problems.add((TABLE,), f"must contain tables [[{TABLE}]], each with a kind")
    problems.raise_if_any()

    return found


def treatments_in(config: Any, cls: type[World[Any]], path: Path) -> tuple[Any, ...]:
    """Read the tables of treatments in ``run.json``.

    Raises:
        InputError: If the file was edited and is no longer valid.
    """
    problems = Problems(Source.of(config, path))
    if not isinstance(config, list):
        raise problems.source.error(f"must be a list, got {config!r}", ("treatments",))

    found = read_treatments(config, cls, problems, lambda place: ("treatments", place))
    problems.raise_if_any()

    return tuple(found)


def read_treatments(
    tables: Sequence[Any],
    cls: type[World[Any]],
    problems: Problems,
    where: Callable[[int], Where],
    *,
    round_number: int | None = None,
) -> list[str | Treatment]:
    """Read tables of treatments; those of the world's own class become ``name@round``.

    Args:
        tables: The tables, as TOML or JSON has them; a text such as ``warning@12`` is one, too.
        cls: The world's class.
        problems: Collects the problems; tables with a problem are left out.
        where: Returns the place of a table in its document.
        round_number: The round of tables that do not name theirs. If None, every table must.
    """
    found: list[str | Treatment] = []
    for place, given in enumerate(tables):
        if isinstance(given, dict):
            table = given if round_number is None else {"round": round_number, **given}
            read = _own if table.get("kind") == OWN else _ready_made
            if (made := read(table, cls, problems, where(place))) is not None:
                found.append(made)
        elif isinstance(given, str):
            found.append(given)
        else:
            problems.add(where(place), f"must be a table, got {given!r}")

    return found


def treatments_schema(cls: type[World[Any]]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of files of treatments."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Treatments of a prism run",
        "type": "object",
        "properties": {TABLE: {"type": "array", "minItems": 1, "items": treatment_schema(cls)}},
        "required": [TABLE],
        "additionalProperties": False,
    }


def treatment_schema(cls: type[World[Any]]) -> dict[str, Any]:
    """Return the JSON Schema of one table of a treatment.

    For kinds that only a world of your own knows (``treatment_classes``), it describes only the
    round.

    Args:
        cls: The world's class.
    """
    classes = treatment_classes(cls)
    other = part_schema_of(_Other)
    other["properties"]["kind"]["not"] = {"enum": [*classes, OWN]}
    ready_made = [part_schema_of(table_class(each)) for each in classes.values()]

    return {"oneOf": [*ready_made, other, part_schema_of(_Own)]}


@cache
def table_class(cls: type[Treatment]) -> Any:
    """Return the pydantic model for the tables of a class of treatments, made from its fields.

    Bounds that a type cannot say are in the fields' metadata, as ``declared``.
    """
    hints = get_type_hints(cls)
    keys: dict[str, Any] = {"kind": (Literal[cls.kind], ...)}
    keys |= {
        key_of(cls, each.name): (_in_documents(hints[each.name]), _field(cls, each))
        for each in settings_of(cls)
    }
    schema: dict[str, Any] = {"description": (cls.__doc__ or "").partition("\n")[0]}
    if cls is SwitchModel:
        schema["anyOf"] = [{"required": [key]} for key in settings_by_key(AgentSettings)]

    class Table(_Table):
        model_config = ConfigDict(json_schema_extra=schema)

    with warnings.catch_warnings():
        # a field may have the name of one of pydantic's methods
        warnings.simplefilter("ignore", UserWarning)
        return create_model(cls.__name__, __base__=Table, **keys)


def _field(cls: type[Treatment], each: Field[Any]) -> Any:
    is_required = each.default is MISSING and each.default_factory is MISSING
    setting = model_settings_of(cls).get(each.name)
    # the class itself fills in values that a table leaves out
    limits = {
        "default": ... if is_required else None,
        "ge": None if setting is None else setting.least,
        **each.metadata.get("declared", {}),
    }
    return pydantic.Field(**limits)


def _in_documents(hint: Any) -> Any:
    """Return the type of a field in a document, where sequences are lists."""
    inside = get_args(hint)
    if NoneType in inside:
        others = tuple(_in_documents(each) for each in inside if each is not NoneType)
        return Optionally[Union[others]]  # type: ignore[misc, valid-type]  # noqa: UP007
    if get_origin(hint) in (tuple, Sequence) and inside[-1] in (..., str):
        return Listed[_in_documents(inside[0])]  # type: ignore[misc]
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return dict[str, Any]

    return hint


def _ready_made(
    table: Mapping[str, Any], cls: type[World[Any]], problems: Problems, top: Where
) -> Treatment | None:
    classes, kind = treatment_classes(cls), table.get("kind")
    if not isinstance(kind, str) or kind not in classes:
        known = [*classes, OWN]
        said = "is missing" if kind is None else f"cannot be {kind!r}{_instead(kind, known)}"
        problems.add((*top, "kind"), f"{said}: there are {', '.join(known)}")
        return None

    declared = shaped(table_class(classes[kind]), dict(table), problems, top)
    if declared is None:
        return None

    keys = {key_of(classes[kind], each.name): each.name for each in settings_of(classes[kind])}
    given = {
        keys[key]: getattr(declared, key) if isinstance(table[key], list) else table[key]
        for key in table.keys() - {"kind"}
    }
    try:
        return classes[kind](**given, place=_place(problems.source, top))
    except InputError as error:
        name = key_of(classes[kind], error.field or "kind")
        problems.add((*top, *name.split(".")), error.problem)
        return None


def _place(source: Source, where: Where) -> tuple[str, int | None] | None:
    """Return the file and line of a table, for an error."""
    place = source.place(where)
    return None if source.path is None else (source.path, None if place is None else place.line)


def _own(
    table: Mapping[str, Any], cls: type[World[Any]], problems: Problems, top: Where
) -> str | None:
    declared = shaped(_Own, dict(table), problems, top)
    if declared is None:
        return None

    name, own = declared.treatment, list(parts_of(cls).treatments)
    if name not in own:
        known = ", ".join(own) or "none"
        problem = f"{cls.__name__} has no treatment {name!r}{_instead(name, own)}: it has {known}"
        problems.add((*top, "treatment"), problem)
        return None

    return f"{name}@{declared.round}"


def _instead(name: Any, known: Sequence[str]) -> str:
    close = meant(str(name), known)
    return "" if close is None else f" (did you mean {close}?)"
