"""Reading a file of models: TOML, a table for each group of agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prism.errors import FieldValueError
from prism.files._toml import TomlFile
from prism.llm._addresses import check_address
from prism.runs._assigned import BYS, By, ModelAssignment
from prism.runs._settings import problem_with, settings_of


def read_models(path: Path) -> tuple[dict[str, Any], tuple[ModelAssignment, ...], str]:
    """Read a TOML file of models.

    Returns:
        What it says for all agents, what for some, and its SHA-256.

    Raises:
        InputError: If it cannot be read, or has a key or a value that there is not; names the line.
    """
    file = TomlFile.read(path)
    found = file.data
    reader = _Reader(file)
    common = {name: value for name, value in found.items() if name not in BYS}
    assigned = [
        reader.assignment(by, name, table)
        for by in BYS
        for name, table in reader.tables(by, found.get(by, {}))
    ]

    return reader.settings(common, ()), tuple(assigned), file.sha256


class _Reader:
    """Reads the tables of a file, and knows the lines of their keys."""

    def __init__(self, file: TomlFile) -> None:
        self._path = file.path
        self._line = file.line
        self._error = file.error

    def tables(self, by: str, found: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if not isinstance(found, dict):
            raise self._error(f"must be tables such as [{by}.NAME]", (by,))

        for name, table in found.items():
            if not isinstance(table, dict):
                raise self._error(f"must be a table, [{by}.{name}]", (by, name))
            yield name, table

    def assignment(self, by: By, name: str, table: Mapping[str, Any]) -> ModelAssignment:
        place = (str(self._path), self._line((by, name)))
        settings = self.settings(table, (by, name))
        if not settings:
            raise self._error("says nothing: give a model, or leave it out", (by, name))

        return ModelAssignment(by, name, **settings, place=place)

    def settings(self, table: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
        return {name: self._setting(name, value, (*keys, name)) for name, value in table.items()}

    def _setting(self, name: str, value: Any, keys: tuple[str, ...]) -> Any:
        setting = settings_of(ModelAssignment).get(name)
        if setting is None:
            known = f"{', '.join(settings_of(ModelAssignment))}, and tables of {', '.join(BYS)}"
            raise self._error(f"is unknown; there are {known}", keys)

        if name == "host":
            value = self._hosts(value, keys)
        if name == "think" and isinstance(value, bool):
            value = str(value).lower()
        if (problem := problem_with(setting, value)) is not None:
            raise self._error(problem, keys)
        if name == "model" and not value.strip():
            raise self._error("must be the name of a model, as the server lists it", keys)

        return value

    def _hosts(self, value: Any, keys: tuple[str, ...]) -> tuple[str, ...]:
        hosts = tuple([value] if isinstance(value, str) else value)
        if not hosts or not all(isinstance(host, str) for host in hosts):
            raise self._error("must be an address, or a list of addresses", keys)

        try:
            for host in hosts:
                check_address(host)
        except FieldValueError as error:
            raise self._error(str(error).removeprefix("host "), keys) from None

        return hosts
