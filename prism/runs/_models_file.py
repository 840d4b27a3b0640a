"""The file of models, TOML: a default, and a table for each group of agents.

pydantic reads it, so this module is imported only where there is such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, create_model

from prism.errors import FieldValueError
from prism.files._declarations import Declaration, read_document
from prism.files._source import Source, Where
from prism.llm._addresses import check_address
from prism.runs._assigned import BYS, ModelAssignment
from prism.runs._settings import Setting, problem_with, settings_of


def read_models(path: Path) -> tuple[dict[str, Any], tuple[ModelAssignment, ...], str]:
    """Read a TOML file of models.

    Returns:
        What it says for all agents, what for some, and its SHA-256.

    Raises:
        InputError: If it cannot be read, or says what is invalid; names every line.
    """
    source = Source.read(path, "toml")
    common: dict[str, Any] = read_document(_MODELS, source, checks=[_empty_groups]).model_dump(
        exclude_unset=True
    )
    groups = [(by, name, group) for by in BYS for name, group in common.pop(by, {}).items()]
    assigned = []
    for by, name, group in groups:
        place = source.place((by, name))
        line = None if place is None else place.line
        assigned.append(ModelAssignment(by, name, **group, place=(str(path), line)))

    return common, tuple(assigned), source.sha256


def _empty_groups(models: Any) -> Iterator[tuple[Where, str]]:
    for by in BYS:
        for name, group in getattr(models, by).items():
            if not group.model_fields_set:
                yield (by, name), "says nothing: give a model, or leave it out"


def _value(setting: Setting, given: Any) -> Any:
    """Return the value of a setting, as options have it."""
    if setting.name == "host" and isinstance(given, str):
        given = [given]
    if setting.name == "think" and isinstance(given, bool):
        given = str(given).lower()
    if (problem := problem_with(setting, given)) is not None:
        raise ValueError(problem)
    if setting.name == "model" and not given.strip():
        raise ValueError("must be the name of a model, as the server lists it")

    return _hosts(given) if setting.name == "host" else given


def _hosts(given: list[str]) -> tuple[str, ...]:
    if not given:
        raise ValueError("must be an address, or a list of addresses")
    for host in given:
        try:
            check_address(host)
        except FieldValueError as error:
            raise ValueError(str(error).removeprefix("host ")) from None

    return tuple(given)


_SETTINGS: dict[str, Any] = {
    name: (Annotated[Any, BeforeValidator(partial(_value, setting))], None)
    for name, setting in settings_of(ModelAssignment).items()
}
_GROUP = create_model("Group", __base__=Declaration, **_SETTINGS)
_TABLES: dict[str, Any] = {by: (dict[str, _GROUP], {}) for by in BYS}  # type: ignore[valid-type]
_MODELS = create_model("Models", __base__=_GROUP, **_TABLES)
