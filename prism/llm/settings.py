"""The settings of a model: fields whose values pydantic checks.

pydantic is imported with the first value, since most runs ask no model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, get_args, get_type_hints

from annotated_types import Ge, Gt, Le

from prism._numbers import plain_number
from prism.errors import FieldValueError, InputError
from prism.llm.addresses import Kind, check_address
from prism.reasoner.questions import Mode, Rotations
from prism.reasoner.requests import known_of

OF_DECISIONS = ("mode", "stop_at_fallbacks", "prompt", "attributes", "remember", "rotations")
"""Settings without a meaning for a model that writes."""

OF_SPENDING = ("max_calls", "max_tokens", "deadline")

OF_RUNS = (*OF_DECISIONS, *OF_SPENDING)
"""Settings without a meaning outside of a run."""

KEYS: Mapping[str, str] = {"hosts": "host", "seed": "sampling_seed"}
"""The settings that have another name in files."""


@dataclass(frozen=True, slots=True)
class Read:
    """Makes pydantic read values by a function, which raises ValueError for a bad one."""

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


def _addresses(value: Any) -> tuple[str, ...]:
    hosts = _texts(value)
    if not hosts:
        raise ValueError("must be an address, or a list of addresses")
    for host in hosts:
        try:
            check_address(host)
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


def _think(value: Any) -> bool | str:
    # a command line has only texts
    read = {"false": False, "true": True}.get(value, value) if isinstance(value, str) else value
    if isinstance(read, bool) or read in get_args(Effort):
        return read
    raise ValueError(f"must be one of false, true, low, medium, high, got {value!r}")


_DURATION = re.compile(r"0|[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+", re.ASCII)
_FOR_EVER = 1e9
"""Seconds; Ollama refuses much longer durations."""


def _keep_alive(value: Any) -> float | str:
    """Return a duration as Ollama takes it: a number of seconds, or a text with units, as in Go."""
    if isinstance(value, str) and _DURATION.fullmatch(value):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _FOR_EVER:
        return value
    forms = "a number of seconds, or a text with units such as '5m' or '1h30m'"
    raise ValueError(f"must be {forms}, got {value!r}")


Effort = Literal["low", "medium", "high"]
Count = Annotated[int, Ge(1)]
Seconds = Annotated[float, Ge(0.01)]
NotNegative = Annotated[float, Ge(0)]
Hosts = Annotated[Sequence[str], Read(_addresses)]
Variable = Annotated[str, Read(_variable)]
Texts = Annotated[Sequence[str], Read(_texts)]
Think = Annotated[bool | Effort, Read(_think)]
KeepAlive = Annotated[float | str, Read(_keep_alive)]
Window = Annotated[int, Ge(2)]
Share = Annotated[float, Gt(0), Le(1)]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a model, which `Model` describes; None stands for the default."""

    model: str | None = None
    hosts: Hosts | None = None
    server: Kind | None = None
    key: Variable | None = None
    price_in: NotNegative | None = None
    price_out: NotNegative | None = None
    mode: Mode | None = None
    think: Think | None = None
    temperature: NotNegative | None = None
    concurrency: Count | None = None
    timeout: Seconds | None = None
    patience: NotNegative | None = None
    attempts: Count | None = None
    load_timeout: Seconds | None = None
    keep_alive: KeepAlive | None = None
    seed: int | None = None
    window: Window | None = None
    reply_tokens: Count | None = None
    max_calls: Count | None = None
    max_tokens: Count | None = None
    deadline: Seconds | None = None
    stop_at_fallbacks: Share | Literal["never"] | None = None
    prompt: str | None = None
    attributes: Texts | None = None
    remember: Count | None = None
    rotations: Rotations | None = None

    def __post_init__(self) -> None:
        """Refuse invalid values, and store the others in one form."""
        for name, setting in settings_of().items():
            value = getattr(self, name)
            if value is None:
                continue
            try:
                object.__setattr__(self, name, _checked(setting, value))
            except ValueError as error:
                raise InputError(str(error), field=name) from None


REQUESTS: Mapping[str, Any] = {
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
"""The settings of requests, and their defaults."""

_REPLY_SHARE = 4
"""The default fraction of the window for the reply is one over this number."""


def filled_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of requests, with the defaults of those that are not given.

    Raises:
        FieldValueError: If one is invalid; the message names it.
    """
    try:
        settings = {**REQUESTS, **settings_in(Settings(**values))}
    except InputError as error:
        raise FieldValueError(f"{error.field} {error.problem}") from None

    window, tokens = settings["window"], settings["reply_tokens"]
    if window is not None:
        if tokens is not None and tokens >= window:
            problem = f"reply_tokens must be below the window of {window}, got {tokens}"
            raise FieldValueError(problem)
        settings["reply_tokens"] = tokens or max(1, window // _REPLY_SHARE)

    return settings


@cache
def settings_of() -> Mapping[str, Any]:
    """Return the settings by name, with the types of their values."""
    return get_type_hints(Settings, include_extras=True)


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

    try:
        return _reader(kind).validate_python(plain_number(value))
    except ValidationError as error:
        # reads documents, too, which takes as long to load as httpx
        from prism.files.declarations import shape_problems

        _, problem, _ = next(shape_problems(kind, value, error))
        raise ValueError(problem) from None


def settings_in(options: Settings) -> dict[str, Any]:
    """Return the settings of options that are not None."""
    return known_of(options, settings_of())


def to_plain(options: Settings) -> dict[str, Any]:
    """Return the given settings of options as JSON data, by their names in files."""
    settings = settings_in(options).items()
    return {
        KEYS.get(name, name): list(value) if isinstance(value, tuple) else value
        for name, value in settings
    }


def from_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file says by the names of settings."""
    names = {key: name for name, key in KEYS.items()}
    return {names.get(key, key): value for key, value in data.items()}
