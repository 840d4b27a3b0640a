"""A world's parameters by name: its own and those in groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from prism.errors import DefinitionError, FieldValueError, InputError, PrismError
from prism.statechart._engine.checks import did_you_mean
from prism.statechart._identity import identify
from prism.worlds._fields import (
    MISSING,
    Declared,
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
        group: The field of the group that it belongs to, or None.
    """

    field: Field
    hint: Any
    group: str | None = None


def parameters_of(cls: Fields) -> dict[str, Parameter]:
    """Return a world's parameters by name.

    A field whose type is a frozen dataclass is a *group*. The fields of the dataclass take its
    place, with ``help``, ``least`` and ``most`` from their metadata.

    Raises:
        DefinitionError: If two have the same name.
    """
    hints = hints_of(cls)
    found: dict[str, Parameter] = {}
    for name, each in cls.fields.items():
        if each.declared.is_state:
            continue

        hint = hints.get(name, each.annotation)
        inside = _inside(name, hint) if is_group(hint) else {name: Parameter(each, hint)}
        for inner, parameter in inside.items():
            if inner in found:
                raise DefinitionError(f"{cls.__name__} has two parameters called {inner!r}")
            found[inner] = parameter

    return found


def is_group(hint: Any) -> bool:
    """Return whether a type is a group of parameters, a frozen dataclass."""
    params = getattr(hint, "__dataclass_params__", None)
    return isinstance(hint, type) and bool(getattr(params, "frozen", False))


def groups_of(cls: Fields) -> list[str]:
    """Return the names of the fields that hold groups."""
    hints = hints_of(cls)
    return [
        name
        for name, each in cls.fields.items()
        if not each.declared.is_state and is_group(hints.get(name))
    ]


def parameters_told(world: Any) -> dict[str, Any]:
    """Return a world's parameters as they appear in logs."""
    return identify(parameter_values(world)) or {}


def parameter_values(world: Any) -> dict[str, Any]:
    """Return the current values of a world's parameters by name."""
    cls: Any = type(world)
    return {name: _value(world, name, each.group) for name, each in parameters_of(cls).items()}


def in_groups(
    cls: Fields, given: Mapping[str, Any], current: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the values of a world's own fields, with groups assembled from their parameters.

    Args:
        cls: The world's class.
        given: Parameters by name. A group may be given as a whole.
        current: The present groups. Defaults to those of the class.

    Raises:
        TypeError: If there is no such parameter.
        FieldTypeError: If a parameter of a group has the wrong type.
        FieldValueError: If one is out of range.
    """
    known, groups = parameters_of(cls), groups_of(cls)
    found: dict[str, Any] = {name: given[name] for name in groups if name in given}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if name in groups:
            continue
        if name not in known:
            raise TypeError(unknown_parameter(cls, name))

        parameter = known[name]
        if parameter.group is None:
            found[name] = value
            continue

        check_value(parameter.field, parameter.hint, value)
        inside.setdefault(parameter.group, {})[name] = value

    for group, values in inside.items():
        base = {**(current or {}), **found}.get(group, cls.fields[group].declared.default)
        found[group] = replace(base, **values)

    return found


def read_group(cls: type[Any], values: Mapping[str, Any]) -> Any:
    """Return a group from JSON, where tuples are lists."""
    hints = hints_of(cls)
    return cls(**{name: read_value(hints[name], value) for name, value in values.items()})


def set_parameters(world: Any, given: Mapping[str, Any]) -> None:
    """Set parameters of a world by name. Texts are converted to their types."""
    cls: Any = type(world)
    current = {name: getattr(world, name) for name in groups_of(cls)}
    for name, value in in_groups(cls, parsed_parameters(cls, given), current).items():
        setattr(world, name, value)


def parsed_parameters(cls: Fields, given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert parameters from texts, such as those of a command line.

    Raises:
        TypeError: If there is no such parameter.
        FieldTypeError: If a text cannot be converted.
    """
    known, groups = parameters_of(cls), groups_of(cls)
    parsed = {}
    for name, value in given.items():
        if name in groups and not isinstance(value, str):
            parsed[name] = value
            continue
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
    values, problems = source.value, Problems(source)
    if not isinstance(values, dict):
        raise source.error("must map names of parameters to values")

    for name, value in values.items():
        try:
            in_groups(cls, parsed_parameters(cls, {name: value}))
        except (TypeError, PrismError) as error:
            problems.add((name,), str(error))
    problems.raise_if_any()

    return values


def check_group(group: Any) -> None:
    """Refuse values of a group that have the wrong type, are out of range, or are not an option.

    Raises:
        FieldTypeError: If a value has the wrong type.
        FieldValueError: If a value is not allowed.
    """
    cls = type(group)
    hints = hints_of(cls)
    for each in fields(cls):
        value = getattr(group, each.name)
        check_value(_field_of(cls, each), hints[each.name], value)
        among = each.metadata.get("among")
        if among and value not in among:
            where = f"{cls.__name__}.{each.name}"
            raise FieldValueError(f"{where} must be one of {', '.join(among)}, got {value!r}")


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
        self._known = {name: each.group for name, each in parameters_of(cls).items()}

    def __getitem__(self, name: str) -> Any:
        """Return a parameter, or raise a KeyError."""
        return _value(self._world, name, self._known[name])

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._known)

    def __len__(self) -> int:
        """Return their number."""
        return len(self._known)


def _value(world: Any, name: str, group: str | None) -> Any:
    return getattr(world if group is None else getattr(world, group), name)


@lru_cache(64)
def _inside(group: str, cls: type) -> Mapping[str, Parameter]:
    hints = hints_of(cls)
    assert is_dataclass(cls)
    return {
        each.name: Parameter(_field_of(cls, each), hints[each.name], group) for each in fields(cls)
    }


def _field_of(cls: type, each: Any) -> Field:
    declared = Declared(
        MISSING if each.default is NO_DEFAULT else each.default,
        help=each.metadata.get("help", ""),
        least=each.metadata.get("least"),
        most=each.metadata.get("most"),
    )
    return Field(each.name, cls.__name__, each.type, declared)
