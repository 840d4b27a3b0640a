"""The variables that prompts, conditions and code steps see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from time import monotonic
from typing import Any

from prism.errors import FieldTypeError
from prism.programs._layer import StepFailedError
from prism.telemetry.loggers import describe

HostVariable = Any | Callable[[Any], Any]
"""A value, or a function of the agent that returns it."""

MOST_LEVELS = 50
"""How deep a variable may be nested: the sandbox writes out fewer than 100 levels."""

TURN_SECONDS = 2.5
"""How long all conditions and code steps of a turn may compute."""

_LARGEST = 2**63


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


class Variables(Mapping[str, Any]):
    """The context, then what the host provides, then what the agent provides.

    Functions of the host and the agent are only called when their variable is looked up.

    Args:
        agent: The agent, for the functions.
        provided: What the host and the agent provide.

    Attributes:
        provided: What the host and the agent provide.
        context: The context, plain data.
        seconds_left: How long conditions and code may still compute in this turn.
    """

    def __init__(self, agent: Any, provided: Mapping[str, HostVariable]) -> None:
        self._agent = agent
        self.provided: Mapping[str, HostVariable] = provided
        self.seconds_left: float = TURN_SECONDS
        self.context: dict[str, Any] = {}

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time that a condition or code step takes towards the limit of the turn.

        Raises:
            StepFailedError: If those before it have taken all of it.
        """
        if self.seconds_left <= 0:
            problem = f"conditions and code of this turn have taken {TURN_SECONDS:g} s already"
            raise StepFailedError(problem, is_final=True)
        began = monotonic()
        try:
            yield
        finally:
            self.seconds_left -= monotonic() - began

    def __getitem__(self, name: str) -> Any:
        """Return a variable as plain data; raises a KeyError if nobody provides it.

        Raises:
            StepFailedError: If the host's function fails, or returns what is not data.
        """
        if name in self.context:
            return self.context[name]

        value = self.provided[name]
        try:
            return as_data(value(self._agent) if callable(value) else value, name)
        except FieldTypeError as error:
            raise StepFailedError(str(error)) from None
        except Exception as error:  # of the host's code: the step fails, and the log says so
            raise StepFailedError(f"the variable {name!r} failed: {describe(error)}") from error

    def __contains__(self, name: object) -> bool:
        """Return whether somebody provides a variable, without calling a function."""
        return name in self.context or name in self.provided

    def __iter__(self) -> Iterator[str]:
        """Yield every name once."""
        return iter({**self.context, **self.provided})

    def __len__(self) -> int:
        """Return how many there are."""
        return len({**self.context, **self.provided})


def as_data(value: Any, name: str) -> Any:
    """Return a value as JSON returns it, so that conditions and steps get no live objects.

    Raises:
        FieldTypeError: If JSON cannot hold it, or would change it.
    """
    try:
        return through_json(value)
    except (TypeError, ValueError, RecursionError) as error:
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


def through_json(value: Any) -> Any:
    """Return a value as JSON returns it.

    Raises:
        TypeError: If JSON cannot hold it.
        ValueError: If it has a number that is not finite or has more than 64 bits, half a
            character, or too many levels.
    """
    data = json.loads(json.dumps(value, allow_nan=False))
    _require_plain(data, MOST_LEVELS)
    return data


def _require_plain(value: Any, levels: int) -> None:
    if levels == 0 and isinstance(value, (dict, list)):
        raise ValueError(f"it is nested more than {MOST_LEVELS} levels deep")
    if isinstance(value, dict):
        "".join(value).encode()
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            _require_plain(each, levels - 1)
    elif isinstance(value, int) and not -_LARGEST <= value < 2 * _LARGEST:
        raise ValueError("a whole number of more than 64 bits is not data")
    elif isinstance(value, str):
        value.encode()
