"""Guards and actions that take the trigger, source or target of their transition as parameters."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, Protocol

# A type checker has to know each set of names that may be asked for


class _Trigger(Protocol):
    def __call__(self, agent: Any, context: Any, /, *, trigger: Any) -> object: ...


class _Source(Protocol):
    def __call__(self, agent: Any, context: Any, /, *, source: Any) -> object: ...


class _Target(Protocol):
    def __call__(self, agent: Any, context: Any, /, *, target: Any) -> object: ...


class _TriggerSource(Protocol):
    def __call__(self, agent: Any, context: Any, /, *, trigger: Any, source: Any) -> object: ...


class _TriggerTarget(Protocol):
    def __call__(self, agent: Any, context: Any, /, *, trigger: Any, target: Any) -> object: ...


class _Ends(Protocol):
    def __call__(self, agent: Any, context: Any, /, *, source: Any, target: Any) -> object: ...


class _All(Protocol):
    def __call__(
        self, agent: Any, context: Any, /, *, trigger: Any, source: Any, target: Any
    ) -> object: ...


Asking = _Trigger | _Source | _Target | _TriggerSource | _TriggerTarget | _Ends | _All
"""A function of agent and context that asks for more."""

_NAMES = ("trigger", "source", "target")


def asked_of(signature: inspect.Signature) -> list[str]:
    """Return the parameters that a guard or an action takes besides agent and context."""
    # its first two parameters are agent and context, whatever they are called
    rest = list(signature.parameters.values())[2:]
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [each.name for each in rest if each.name in _NAMES and each.kind in by_name]


def told(function: Any, item: Any, source: Any) -> Any:
    """Return a guard or an action as a function of only agent and context.

    Args:
        function: What was given; None is returned as it is, as is what asks for nothing.
        item: The transition that it belongs to.
        source: The state that the transition leaves.
    """
    if function is None:
        return None
    try:
        names = asked_of(inspect.signature(function, follow_wrapped=False))
    except (TypeError, ValueError):
        # some callables of C code do not tell
        return function
    known = {"trigger": item.trigger, "source": source, "target": item.target}

    return partial(function, **{name: known[name] for name in names}) if names else function
