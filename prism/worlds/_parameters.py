"""A world's parameters by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism.errors import InputError, PrismError
from prism.statechart.names import did_you_mean, identify
from prism.worlds._fields import (
    Field,
    Fields,
    check_value,
    hints_of,
    is_a,
    read_field,
    read_value,
    words_of_type,
)

_MOST_LISTED = 20
"""The largest number of parameters that a message about an unknown one lists in full."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a world.

    Args:
        field: Its declaration.
        hint: Its type.
    """

    field: Field
    hint: Any


def parameters_of(cls: Fields) -> dict[str, Parameter]:
    """Return a world's parameters by name."""
    hints = hints_of(cls)
    return {
        name: Parameter(each, hints.get(name, each.annotation))
        for name, each in cls.fields.items()
        if not each.declared.is_state
    }


def parameters_told(world: Any) -> dict[str, Any]:
    """Return a world's parameters as they appear in logs."""
    return identify(parameter_values(world)) or {}


def parameter_values(world: Any) -> dict[str, Any]:
    """Return the current values of a world's parameters by name."""
    cls: Any = type(world)
    return {name: getattr(world, name) for name in _names_of(cls)}


def _names_of(cls: Fields) -> list[str]:
    return [name for name, each in cls.fields.items() if not each.declared.is_state]


def set_parameters(world: Any, given: Mapping[str, Any]) -> None:
    """Set parameters of a world by name. Texts are converted to their types."""
    cls: Any = type(world)
    for name, value in parsed_parameters(cls, given).items():
        setattr(world, name, value)


def parsed_parameters(cls: Fields, given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert parameters from texts, such as those of a command line.

    Raises:
        TypeError: If there is no such parameter.
        FieldTypeError: If a text cannot be converted.
    """
    known = parameters_of(cls)
    parsed = {}
    for name, value in given.items():
        if name not in known:
            raise TypeError(unknown_parameter(cls, name))

        parsed[name] = read_field(cls.__name__, known[name].field, known[name].hint, value)

    return parsed


def read_parameter_file(path: Path, cls: Fields) -> Mapping[str, Any]:
    """Return the parameters in a file: TOML, or JSON or YAML by its suffix.

    Raises:
        InputError: If it cannot be read or is invalid; the message lists all problems by line and
            key.
    """
    # most runs have no such file
    from prism.files._source import Problems, Source

    is_other = path.suffix.lower() in (".json", ".yaml", ".yml")
    source = Source.read(path, None if is_other else "toml")
    values, problems, known = source.value, Problems(source), parameters_of(cls)
    if not isinstance(values, dict):
        raise source.error("must map names of parameters to values")

    for name, value in values.items():
        try:
            parsed = parsed_parameters(cls, {name: value})
            check_value(known[name].field, known[name].hint, parsed[name])
        except (TypeError, PrismError) as error:
            problems.add((name,), str(error))
    problems.raise_if_any()

    return values


def unknown_parameter(cls: Fields, name: str) -> str:
    """Return the error for an unknown parameter."""
    if name in cls.fields:
        return f"{cls.__name__}.{name} is state, not a parameter: set it in setup"

    known = parameters_of(cls)
    if len(known) > _MOST_LISTED and (meant := did_you_mean(name, list(known))).startswith(";"):
        return f"{cls.__name__} has no parameter {name!r}{meant}"

    listed = f"the parameters {', '.join(known)}" if known else "no parameters"

    return f"{cls.__name__} has no parameter {name!r}: it has {listed}"


def require_read_back(cls: Fields, name: str, plain: Any, value: Any) -> None:
    """Refuse a parameter that a resumed run would not read as it is.

    Args:
        cls: The world's class.
        name: The parameter's name.
        plain: What ``run.json`` would hold.
        value: The value.

    Raises:
        InputError: If its type does not fit it, or does not say enough.
    """
    parameter = parameters_of(cls)[name]
    with suppress(ValueError):
        read = read_value(parameter.hint, json.loads(json.dumps(plain)))
        if is_a(parameter.hint, read) and repr(read) == repr(value):
            return

    raise InputError(
        f"{cls.__name__}.{name} is {value!r}, but declared as {words_of_type(parameter.hint)}, as "
        "which a resumed run could not read it from run.json: declare its own type",
        field="parameters",
    )


class ParameterView(Mapping[str, Any]):
    """The current parameters of a world, read-only.

    Args:
        world: The world.
    """

    __slots__ = ("_known", "_world")

    def __init__(self, world: Any) -> None:
        cls: Any = type(world)
        self._world = world
        self._known = dict.fromkeys(_names_of(cls))

    def __getitem__(self, name: str) -> Any:
        """Return a parameter, or raise a KeyError."""
        if name not in self._known:
            raise KeyError(name)
        return getattr(self._world, name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._known)

    def __len__(self) -> int:
        """Return their number."""
        return len(self._known)
