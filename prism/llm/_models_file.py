"""The file of models in TOML: a default, and a table for each group of agents.

pydantic reads it, so this module is imported only where there is such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, create_model

from prism.errors import InputError
from prism.files._declarations import Declaration, read_document
from prism.files._source import Source, Where
from prism.llm._assignments import BYS, ModelAssignment
from prism.llm._model_text import model_in_text
from prism.llm._settings import Setting, from_plain, meant, problem_with, settings_of


def read_models(path: Path) -> tuple[dict[str, Any], tuple[ModelAssignment, ...], str]:
    """Read a TOML file of models.

    Returns:
        Its settings for all agents, those for some, and its SHA-256.

    Raises:
        InputError: If it cannot be read or is invalid; the message names every line.
    """
    source = Source.read(path, "toml")
    common: dict[str, Any] = read_document(_MODELS, source, checks=[_what_is_said]).model_dump(
        exclude_unset=True
    )
    groups = [(by, name, group) for by in BYS for name, group in common.pop(by, {}).items()]
    assigned = []
    for by, name, group in groups:
        place = source.place((by, name))
        line = None if place is None else place.line
        assigned.append(ModelAssignment(by, name, **_settings(group), place=(str(path), line)))

    return _settings(common), tuple(assigned), source.sha256


def _settings(table: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a table; the text of a model may hold its server and hosts."""
    told = model_in_text(table["model"]) if "model" in table else {}
    return {**from_plain(ModelAssignment, table), **told}


def _what_is_said(models: Any) -> Iterator[tuple[Where, str]]:
    yield from _said_twice((), models)
    for by in BYS:
        for name, group in getattr(models, by).items():
            if not group.model_fields_set:
                yield (by, name), "is empty: give a model, or leave it out"
            yield from _said_twice((by, name), group)


def _said_twice(place: Where, table: Any) -> Iterator[tuple[Where, str]]:
    """Yield settings of a table that the text of its model also contains."""
    if not isinstance(table.model, str):
        return

    names = {"hosts": "host"}
    for name in model_in_text(table.model):
        key = names.get(name, name)
        if name != "model" and getattr(table, key) is not None:
            yield (*place, key), f"is already in {table.model.partition('@')[0]!r}: leave one out"


def _value(setting: Setting, given: Any) -> Any:
    """Return the value of a setting in the form of options."""
    given = meant(setting, given)
    if (problem := problem_with(setting, given)) is not None:
        raise ValueError(problem)
    if setting.name == "model":
        if not given.strip():
            raise ValueError("must be the name of a model, as the server lists it")
        try:
            model_in_text(given)
        except InputError as error:
            raise ValueError(error.problem) from None

    if setting.name == "hosts" and not given:
        raise ValueError("must be an address, or a list of addresses")

    return tuple(given) if setting.repeats else given


_SETTINGS: dict[str, Any] = {
    setting.key: (Annotated[Any, BeforeValidator(partial(_value, setting))], None)
    for setting in settings_of(ModelAssignment).values()
}
_GROUP = create_model("Group", __base__=Declaration, **_SETTINGS)
_TABLES: dict[str, Any] = {by: (dict[str, _GROUP], {}) for by in BYS}  # type: ignore[valid-type]
_MODELS = create_model("Models", __base__=_GROUP, **_TABLES)
