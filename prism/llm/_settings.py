"""The settings of a model: fields whose values pydantic checks.

pydantic is imported with the first value, since most runs ask no model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypedDict, get_args, get_type_hints

from annotated_types import Ge, Gt, Le

from prism.errors import FieldValueError, InputError
from prism.llm._addresses import Address, check_address

Mode = Literal["auto", "decision", "chat"]
Pick = Literal["draw", "argmax"]
Rotations = Literal["none", "drawn", "all"]
Server = Literal["ollama", "openai"]

OF_DECISIONS = (
    *("mode", "pick", "stop_at_fallbacks", "prompt", "attributes", "remember"),
    *("remember_tokens", "reasons", "rotations"),
)
"""Settings without a meaning for a model that writes."""

OF_SPENDING = ("max_calls", "max_tokens", "deadline", "cache")

OF_RUNS = (*OF_DECISIONS, *OF_SPENDING)
"""Settings without a meaning outside of a run."""

KEYS: Mapping[str, str] = {"hosts": "host", "seed": "sampling_seed"}
"""The settings that have another name in files."""


@dataclass(frozen=True, slots=True)
class Read:
    """Has pydantic read the values of a type by a function, which raises ValueError."""

    function: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> Any:
        """Return the schema of the function."""
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(self.function)


def _texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts; a single one stands for a list of one."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(each, str) for each in texts):
        raise ValueError(f"must be a text or a list of texts, got {type(value).__name__}")
    return tuple(texts)


def _addresses(value: Any) -> tuple[Address, ...]:
    hosts = tuple(map(Address.of, _texts(value)))
    if not hosts:
        raise ValueError("must be an address, or a list of addresses")
    for host in hosts:
        try:
            check_address(host.full)
        except FieldValueError as error:
            raise ValueError(str(error).removeprefix("host ")) from None
    return hosts


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[A-Z_][A-Z0-9_]*", value):
        # it may be the key itself, given by mistake, which must not be shown
        raise ValueError(
            "must be the name of the environment variable that holds the key, in capital "
            "letters, such as OPENAI_API_KEY; the given value is not shown"
        )
    return value


def _path(value: Any) -> Path:
    if isinstance(value, (str, os.PathLike)):
        return Path(value)
    raise ValueError(f"must be the name of a file, got {value!r}")


def _think(value: Any) -> bool | str:
    # a command line has only texts
    read = {"false": False, "true": True}.get(value, value) if isinstance(value, str) else value
    if isinstance(read, bool) or read in get_args(Effort):
        return read
    raise ValueError(f"must be one of false, true, low, medium, high, got {value!r}")


_DURATION = re.compile(r"0|[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+")
_FOR_EVER = 1e9
"""Seconds; Ollama refuses much longer durations."""


def _keep_alive(value: Any) -> float | str:
    """Return a duration as Ollama takes it: a number of seconds, or a text with units, as in Go."""
    if isinstance(value, str) and _DURATION.fullmatch(value):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _FOR_EVER:
        return value
    raise ValueError(
        f"must be a number of seconds, or a text with units such as '5m' or '1h30m', got {value!r}"
    )


Effort = Literal["low", "medium", "high"]
Count = Annotated[int, Ge(1)]
Seconds = Annotated[float, Ge(0.01)]
NotNegative = Annotated[float, Ge(0)]
Hosts = Annotated[Sequence[str], Read(_addresses)]
Variable = Annotated[str, Read(_variable)]
Texts = Annotated[Sequence[str], Read(_texts)]
File = Annotated[Path, Read(_path)]
Think = Annotated[bool | Effort, Read(_think)]
KeepAlive = Annotated[float | str, Read(_keep_alive)]
Window = Annotated[int, Ge(2)]
Share = Annotated[float, Gt(0), Le(1)]


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The settings that may differ between the agents of a run, and change during it.

    None stands for the default, or for the run's setting; `Model` describes them.
    """

    model: str | None = None
    hosts: Hosts | None = None
    server: Server | None = None
    key: Variable | None = None
    price_in: NotNegative | None = None
    price_out: NotNegative | None = None
    mode: Mode | None = None
    pick: Pick | None = None
    think: Think | None = None
    temperature: NotNegative | None = None
    concurrency: Count | None = None
    timeout: Seconds | None = None
    patience: NotNegative | None = None

    def __post_init__(self) -> None:
        """Refuse invalid values, and store the others in one form."""
        kind: Any = type(self)
        for name, setting in settings_of(kind).items():
            value = getattr(self, name)
            if value is None:
                continue
            try:
                object.__setattr__(self, name, _checked(setting, value))
            except ValueError as error:
                raise InputError(str(error), field=name) from None


@dataclass(frozen=True, kw_only=True)
class RunSettings(AgentSettings):
    """The settings of a model for a whole run, besides those that may differ in it."""

    attempts: Count | None = None
    load_timeout: Seconds | None = None
    keep_alive: KeepAlive | None = None
    seed: int | None = None
    window: Window | None = None
    reply_tokens: Count | None = None
    max_calls: Count | None = None
    max_tokens: Count | None = None
    deadline: Seconds | None = None
    cache: File | None = None
    stop_at_fallbacks: Share | Literal["never"] | None = None
    prompt: str | None = None
    attributes: Texts | None = None
    remember: Count | None = None
    remember_tokens: Count | None = None
    reasons: bool | None = None
    rotations: Rotations | None = None


class RequestSettings(TypedDict, total=False):
    """The settings of requests, as a pool takes them; its servers have them all."""

    concurrency: Count
    timeout: Seconds
    load_timeout: Seconds
    attempts: Count
    patience: NotNegative | None
    temperature: NotNegative
    seed: int
    think: Think | None
    keep_alive: KeepAlive
    window: Window | None
    reply_tokens: Count | None
    key: Variable | None


REQUESTS: RequestSettings = {
    "concurrency": 4,
    "timeout": 60.0,
    "load_timeout": 600.0,
    "attempts": 3,
    "patience": 0.0,
    "temperature": 0.0,
    "seed": 0,
    "think": None,
    "keep_alive": "30m",
    "window": None,
    "reply_tokens": None,
    "key": None,
}
"""Their defaults."""

_REPLY_SHARE = 4
"""The default fraction of the window for the reply is one over this number."""


def filled_in(given: Mapping[str, Any]) -> RequestSettings:
    """Return all settings of requests, with the defaults of those that are not given.

    Raises:
        FieldValueError: If one is invalid; the message names it.
        TypeError: If one is unknown.
    """
    kinds = get_type_hints(RequestSettings, include_extras=True)
    if unknown := given.keys() - kinds.keys():
        raise TypeError(f"{min(unknown)} is not a setting of requests: use {', '.join(kinds)}")

    found: Any = dict(REQUESTS)
    for name, value in given.items():
        if value is not None:
            try:
                found[name] = _checked(kinds[name], value)
            except ValueError as error:
                raise FieldValueError(f"{name} {error}") from None

    window, tokens = found["window"], found["reply_tokens"]
    if window is not None:
        if tokens is not None and tokens >= window:
            problem = f"reply_tokens must be below the window of {window}, got {tokens}"
            raise FieldValueError(problem)
        found["reply_tokens"] = tokens or max(1, window // _REPLY_SHARE)

    return found  # type: ignore[no-any-return]


@cache
def settings_of(kind: Any) -> Mapping[str, Any]:
    """Return the settings of a class by name, with the types of their values besides None."""
    declares = RunSettings if issubclass(kind, RunSettings) else AgentSettings
    hints = get_type_hints(declares, include_extras=True)
    return {each.name: _without_none(hints[each.name]) for each in fields(declares)}


def _without_none(hint: Any) -> Any:
    first, *others = (each for each in get_args(hint) if each is not NoneType)
    for each in others:
        first |= each

    return first


@lru_cache(maxsize=64)
def _reader(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False))


def _checked(kind: Any, value: Any) -> Any:
    """Return the stored form of a value.

    Raises:
        ValueError: If it is invalid; the message is the problem.
    """
    from pydantic import ValidationError

    from prism.files.declarations import shape_problems

    try:
        return _reader(kind).validate_python(value)
    except ValidationError as error:
        _, problem, _ = next(shape_problems(kind, value, error))
        raise ValueError(problem) from None


def given_settings(options: AgentSettings) -> dict[str, Any]:
    """Return the settings of options that are not None."""
    kind: Any = type(options)
    given = {name: getattr(options, name) for name in settings_of(kind)}
    return {name: value for name, value in given.items() if value is not None}


def to_plain(options: AgentSettings) -> dict[str, Any]:
    """Return the given settings of options as JSON data, by their names in files."""
    return {KEYS.get(name, name): _plain(value) for name, value in given_settings(options).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [each.kept if isinstance(each, Address) else each for each in value]
    return str(value) if isinstance(value, Path) else value


def from_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file says by the names of settings."""
    names = {key: name for name, key in KEYS.items()}
    return {names.get(key, key): value for key, value in data.items()}
