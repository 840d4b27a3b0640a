"""The file of models in TOML: a default, and a table for each group of agents.

pydantic reads it, so this module is imported only where there is such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import create_model

from prism.errors import InputError
from prism.files._source import Source, Where
from prism.files.declarations import Declaration, Optionally, read_document
from prism.llm._assignments import BYS, ModelAssignment
from prism.llm._model_text import model_in_text
from prism.llm._settings import KEYS, AgentSettings, from_plain, settings_of


def read_models(path: Path) -> tuple[dict[str, Any], tuple[ModelAssignment, ...], str]:
    """Read a TOML file of models.

    Returns:
        Its settings for all agents, those for some, and its SHA-256.

    Raises:
        InputError: If it cannot be read or is invalid; the message names every line.
    """
    source = Source.read(path, "toml")
    common: dict[str, Any] = read_document(_MODELS, source, checks=[_problems]).model_dump(
        exclude_unset=True
    )
    groups = [(by, name, group) for by in BYS for name, group in common.pop(by, {}).items()]
    assigned = []
    for by, name, group in groups:
        line = getattr(source.place((by, name)), "line", None)
        assigned.append(ModelAssignment(by, name, **_settings(group), place=(str(path), line)))

    return _settings(common), tuple(assigned), source.sha256


def _settings(table: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a table; the text of a model may hold its server and hosts."""
    return {**from_plain(table), **(model_in_text(table["model"]) if "model" in table else {})}


def _problems(models: Any) -> Iterator[tuple[Where, str]]:
    yield from _in_table((), models)
    for by in BYS:
        for name, group in getattr(models, by).items():
            if not group.model_fields_set:
                yield (by, name), "is empty: give a model, or leave it out"
            yield from _in_table((by, name), group)


def _in_table(place: Where, table: Any) -> Iterator[tuple[Where, str]]:
    """Yield what is wrong with the text of a model, and settings that it also contains."""
    if table.model is None:
        return
    try:
        named = model_in_text(table.model)
    except InputError as error:
        yield (*place, "model"), error.problem
        return

    for key in (KEYS.get(name, name) for name in named if name != "model"):
        if getattr(table, key) is not None:
            yield (*place, key), f"is already in {table.model.partition('@')[0]!r}: leave one out"


_SETTINGS: dict[str, Any] = {
    KEYS.get(name, name): (Optionally[kind], None)  # type: ignore[valid-type, misc]
    for name, kind in settings_of(AgentSettings).items()
}
_GROUP = create_model("Group", __base__=Declaration, **_SETTINGS)
_TABLES: dict[str, Any] = {by: (dict[str, _GROUP], {}) for by in BYS}  # type: ignore[valid-type]
_MODELS = create_model("Models", __base__=_GROUP, **_TABLES)
