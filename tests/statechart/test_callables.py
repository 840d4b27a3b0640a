"""What can be a guard or an action."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from prism.errors import DefinitionError
from prism.statechart import AgentState, Statechart, Transition

S = AgentState


def plain(agent: Any, context: Any) -> bool:
    return True


def with_default(agent: Any, context: Any, least: float = 0.5) -> bool:
    return True


def of_any(*given: Any) -> bool:
    return True


def short(agent: Any) -> bool:
    return True


def long(agent: Any, context: Any, least: float) -> bool:
    return True


def named_only(agent: Any, context: Any, *, least: float) -> bool:
    return True


async def later(agent: Any, context: Any) -> bool:
    return True


def yields(agent: Any, context: Any) -> Iterator[bool]:
    yield False


async def yields_later(agent: Any, context: Any) -> AsyncIterator[bool]:
    yield False


def adapted(function: Callable[[Any], bool]) -> Callable[[Any, Any], bool]:
    """Decorate a function of the agent alone."""

    @functools.wraps(function)
    def guard(agent: Any, context: Any) -> bool:
        return function(agent)

    return guard


class Called:
    """Objects and methods that can be called."""

    def __call__(self, agent: Any, context: Any) -> bool:
        return True

    def method(self, agent: Any, context: Any) -> bool:
        return True

    @staticmethod
    def static(agent: Any, context: Any) -> bool:
        return True

    @classmethod
    def short(cls, agent: Any) -> bool:
        return True


class CalledLater:
    """An object whose class makes its calls async."""

    async def __call__(self, agent: Any, context: Any) -> bool:
        return False


class CalledShort:
    """An object that is called with the agent alone."""

    def __call__(self, agent: Any) -> bool:
        return False


@pytest.mark.parametrize(
    "function",
    [
        plain,
        with_default,
        of_any,
        lambda *given: True,
        partial(long, least=0.3),
        partial(named_only, least=0.3),
        adapted(short),
        Called(),
        Called().method,
        Called.static,
        Mock(),
        max,
        print,
        isinstance,
        partial(max, 1),
    ],
)
@pytest.mark.parametrize("kind", ["guard", "action"])
def test_whatever_takes_agent_and_context_is_accepted(kind: str, function: Any) -> None:
    """A function, method, partial, decorated or callable object that takes both can be used."""
    move = Transition("go", S.IDLE, S.RESTING, **{kind: function})
    assert getattr(move, kind) is function


@pytest.mark.parametrize(
    ("function", "name", "called_as"),
    [
        (short, "'short'", "(agent: Any)"),
        (long, "'long'", "(agent: Any, context: Any, least: float)"),
        (named_only, "'named_only'", "(agent: Any, context: Any, *, least: float)"),
        (lambda: True, "'<lambda>'", "()"),
        (Called.method, "'method'", "(self, agent: Any, context: Any)"),
        (Called.short, "'short'", "(agent: Any)"),
        (CalledShort(), "<", "(agent: Any)"),
        (partial(plain, None), "functools.partial", "(context: Any)"),
        ([].append, "'append'", "(object, /)"),
    ],
)
@pytest.mark.parametrize("kind", ["guard", "action"])
def test_whatever_does_not_take_both_is_refused_at_definition(
    kind: str, function: Any, name: str, called_as: str
) -> None:
    """A function that two arguments do not fit is refused by name, with how it is called."""
    with pytest.raises(DefinitionError) as caught:
        Transition("go", S.IDLE, S.RESTING, **{kind: function})
    message = str(caught.value)
    assert message.startswith(f"transition 'go': {kind} {name}")
    assert message.endswith(
        f"must take two arguments, {kind}(agent, context), but is called as {called_as}"
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (later, "guard 'later' is async"),
        (yields_later, "guard 'yields_later' is async"),
        (CalledLater(), "is async"),
        (CalledLater().__call__, "is async"),
        (partial(later), "is async"),
        (partial(partial(CalledLater())), "is async"),
        (AsyncMock(), "is async"),
        (yields, "guard 'yields' is a generator"),
    ],
)
def test_what_does_not_run_when_it_is_called_is_refused_at_definition(
    function: Any, message: str
) -> None:
    """An async or generator function, in whatever it is wrapped, would always count as passed."""
    with pytest.raises(DefinitionError, match=message):
        Transition("go", S.IDLE, S.RESTING, function)


def test_a_document_with_such_a_function_is_refused() -> None:
    """A chart that is read gets its functions checked, too."""
    data = {
        "schema": 1,
        "states": ["a"],
        "initial": "a",
        "transitions": [{"trigger": "go", "source": "a", "target": "a", "guard": "short"}],
    }
    with pytest.raises(DefinitionError, match="guard 'short' must take two arguments"):
        Statechart.from_dict(data, guards={"short": short})
