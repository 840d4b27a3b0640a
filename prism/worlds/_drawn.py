"""Fields of agents that are drawn when the agent joins a run, each from a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, TypeVar, cast

from prism.errors import DefinitionError
from prism.randomness import RandomStream
from prism.worlds._fields import Declared, refuse_shared

ValueT = TypeVar("ValueT")


def draw(function: Callable[[RandomStream], ValueT]) -> ValueT:
    """Declare a value that your own function draws once for each agent.

    Args:
        function: Takes the field's random stream: ``draw(lambda random: random.beta(2, 5))``.
    """
    if not callable(function) or isinstance(function, Declared):
        raise DefinitionError(
            f"draw({function!r}) needs a function: draw(lambda random: random.normal(0, 1))"
        )

    return cast(ValueT, Declared(draw=function, drawn="by a function"))


def uniform(low: float, high: float) -> float:
    """Declare a number that is drawn once for each agent, uniformly from ``low`` to ``high``."""
    if not low <= high:
        raise DefinitionError(f"uniform({low!r}, {high!r}): the first must not be the larger")

    return cast(float, _declared("between", low, high, drawn=f"uniform from {low} to {high}"))


def whole(least: int, most: int) -> int:
    """Declare a whole number that is drawn once for each agent, including both ends."""
    if not least <= most:
        raise DefinitionError(f"whole({least!r}, {most!r}): the first must not be the larger")

    drawn = f"whole from {least} to {most}"
    return cast(
        int, Declared(draw=lambda stream: least + stream.index(most - least + 1), drawn=drawn)
    )


def one_of(*options: ValueT) -> ValueT:
    """Declare a value that is drawn once for each agent from several equally likely ones."""
    if not options:
        raise DefinitionError("one_of() needs something to draw from")
    for option in options:
        refuse_shared(option, "tuples")

    drawn = f"one of {', '.join(map(repr, options))}"
    return cast(ValueT, _declared("choice", options, drawn=drawn))


def normal(mean: float = 0.0, sd: float = 1.0) -> float:
    """Declare a number that is drawn once for each agent.

    See `prism.randomness.RandomStream.normal`.
    """
    return cast(float, _declared("normal", mean, sd))


def lognormal(mean: float = 0.0, sd: float = 1.0) -> float:
    """Declare a number that is drawn once for each agent.

    See `prism.randomness.RandomStream.lognormal`.
    """
    return cast(float, _declared("lognormal", mean, sd))


def exponential(mean: float = 1.0) -> float:
    """Declare a number that is drawn once for each agent.

    See `prism.randomness.RandomStream.exponential`.
    """
    return cast(float, _declared("exponential", mean))


def gamma(shape: float, scale: float = 1.0) -> float:
    """Declare a number that is drawn once for each agent.

    See `prism.randomness.RandomStream.gamma`.
    """
    return cast(float, _declared("gamma", shape, scale))


def beta(alpha: float, beta: float) -> float:
    """Declare a number from 0 to 1 that is drawn once for each agent.

    See `prism.randomness.RandomStream.beta`.
    """
    return cast(float, _declared("beta", alpha, beta))


def poisson(mean: float) -> int:
    """Declare a count that is drawn once for each agent.

    See `prism.randomness.RandomStream.poisson`.
    """
    return cast(int, _declared("poisson", mean))


def binomial(number: int, probability: float) -> int:
    """Declare a count that is drawn once for each agent.

    See `prism.randomness.RandomStream.binomial`.
    """
    return cast(int, _declared("binomial", number, probability))


def _declared(method: str, *values: Any, drawn: str = "") -> Declared:
    """Return the declaration of a field that a method of a stream draws.

    Raises:
        DefinitionError: If the method rejects the values.
    """
    drawn_from = methodcaller(method, *values)
    try:
        # draw once, to refuse values out of range where they are written
        drawn_from(RandomStream(0))
    except (TypeError, ValueError) as error:
        raise DefinitionError(str(error)) from None

    return Declared(draw=drawn_from, drawn=drawn or f"{method}({', '.join(map(repr, values))})")
