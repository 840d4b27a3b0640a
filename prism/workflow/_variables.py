"""The variables that prompts, conditions and code steps see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from operator import attrgetter
from typing import Any

import orjson

from prism.errors import FieldTypeError, PrismError
from prism.telemetry.loggers import describe

HostVariable = Any | Callable[[Any], Any]
"""A value, or a function of the agent that returns it."""


def _last_result(agent: Any) -> Any:
    return agent.action_history[-1].result if agent.action_history else None


PROVIDED: Mapping[str, HostVariable] = {
    "agent_id": attrgetter("agent_id"),
    "tick": attrgetter("turn_number"),
    "state": attrgetter("state.value"),
    "_current_state": attrgetter("state.value"),
    "action_history": lambda agent: [result.to_dict() for result in agent.action_history],
    "last_action_result": _last_result,
    "success_rate": attrgetter("actions.success_rate"),
}
"""Variables of the specification that every agent provides itself."""


class VariableError(PrismError, ValueError):
    """A variable of the host is not available: its function failed, or did not return data."""


class Variables(Mapping[str, Any]):
    """The context, then what the host provides, then what the agent provides.

    Functions of the host and the agent are only called when their variable is looked up.

    Args:
        agent: The agent, for the functions.
        context: What code steps and results have set.
        provided: What the host and the agent provide.
    """

    __slots__ = ("_agent", "_provided", "context")

    def __init__(
        self, agent: Any, context: dict[str, Any], provided: Mapping[str, HostVariable]
    ) -> None:
        self._agent = agent
        self._provided = provided
        self.context: dict[str, Any] = context

    def __getitem__(self, name: str) -> Any:
        """Return a variable as plain data; raises a KeyError if nobody provides it.

        Raises:
            VariableError: If the host's function fails, or returns what is not data.
        """
        if name in self.context:
            return self.context[name]

        value = self._provided[name]
        try:
            return as_data(value(self._agent) if callable(value) else value, name)
        except FieldTypeError as error:
            raise VariableError(str(error)) from None
        except Exception as error:  # of the host's code: the step fails, and the log says why
            raise VariableError(f"the variable {name!r} failed: {describe(error)}") from error

    def __contains__(self, name: object) -> bool:
        """Return whether somebody provides a variable."""
        return name in self.context or name in self._provided

    def __iter__(self) -> Iterator[str]:
        """Yield every name once."""
        return iter({**self.context, **self._provided})

    def __len__(self) -> int:
        """Return how many there are."""
        return len({**self.context, **self._provided})


def as_data(value: Any, name: str) -> Any:
    """Return a value as JSON returns it, so that expressions and steps get no live objects.

    Args:
        value: Anything that JSON can hold.
        name: Its name, for the error.

    Raises:
        FieldTypeError: If JSON cannot hold it, or would change it.
    """
    try:
        return through_json(value)
    except (TypeError, ValueError) as error:
        raise FieldTypeError(
            f"the variable {name!r} must be data that JSON can hold, got "
            f"{type(value).__name__}: {error}"
        ) from None


def as_context(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables as data.

    Raises:
        FieldTypeError: If JSON cannot hold one of them.
    """
    return {str(name): as_data(value, str(name)) for name, value in values.items()}


MOST_LEVELS = 50
"""How deep a variable may be nested, as deep as files: the sandbox can write out less than 100."""


def through_json(value: Any) -> Any:
    """Return a value as JSON returns it, which is what a checkpoint would hold.

    Raises:
        TypeError: If JSON, as checkpoints are written, cannot hold it: it has a whole number of
            more than 64 bits, or half a character.
        ValueError: If it has a number that is not finite, or is nested too deeply.
    """
    written = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    # what is not finite is written as null
    if b"null" in written and _holds_endless(value):
        raise ValueError("a number that is not finite is not data")

    found = orjson.loads(written)
    opened = written.count(b"[") + written.count(b"{")
    if opened > MOST_LEVELS and _depth(found) > MOST_LEVELS:
        raise ValueError(f"it is nested more than {MOST_LEVELS} levels deep")

    return found


def _holds_endless(value: Any) -> bool:
    if isinstance(value, float):
        return not isfinite(value)
    if is_dataclass(value):
        return any(_holds_endless(getattr(value, each.name)) for each in fields(value))
    if isinstance(value, dict):
        return any(map(_holds_endless, value.values()))

    return isinstance(value, (list, tuple)) and any(map(_holds_endless, value))


def _depth(value: Any) -> int:
    if not isinstance(value, (dict, list)):
        return 0

    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inside), default=0)
