"""Random charts, and guards that fail by the thousand without being logged."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from prism.statechart import Statechart, Transition, state_enum

ANY = st.characters(exclude_categories=["Cs"])
"""Every character that a file in UTF-8 can hold: all but lone surrogates.

It is what `hypothesis.strategies.text` takes by default, told by category: by the name of the
encoding, the first test of a fresh checkout encodes each of a million characters, for 1.6 s.
"""


WORDS = [
    *("*", "=", "mro", "name", "state", "initial", "end", "note", "error", "done"),
    *('a"b', "a\nb", "<&>", "_x0020_", "é"),
]
TEXTS = st.text(ANY, min_size=1, max_size=6) | st.sampled_from(WORDS)


class OutcomeGuard:
    """A guard whose outcome the event brings; ``"raise"`` makes it raise."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, agent: Any, context: Any) -> Any:
        outcome = context[self.__name__]
        if outcome == "raise":
            raise LookupError(self.__name__)
        return outcome


def note(agent: Any, context: Any) -> None:
    """Do nothing; the charts' one action."""


@dataclass(frozen=True)
class RandomCharts:
    """Random charts, and what is needed to write, read and run them."""

    charts: Callable[..., st.SearchStrategy[Statechart[Any]]]
    guards: dict[str, Any]
    actions: dict[str, Any]


GUARDS = {name: OutcomeGuard(name) for name in ("is busy", "_x", "class", "true", "is_busy")}


@st.composite
def _charts(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS) -> Statechart[Any]:
    states = list(state_enum("Random", draw(st.lists(texts, min_size=1, max_size=5, unique=True))))
    state = st.sampled_from(states)
    triggers = draw(st.lists(texts.filter(lambda text: text.strip()), min_size=1, max_size=3))
    guard = st.none() | st.sampled_from(list(GUARDS.values()))
    final = draw(st.lists(state, max_size=2, unique=True))
    left = [member for member in states if member not in final]
    move = st.builds(
        Transition,
        st.sampled_from(triggers),
        st.sampled_from(["*", *left]),
        state,
        guard,
        st.none() | st.just(note),
    )
    return Statechart(
        states,
        draw(st.lists(move, max_size=12)),
        draw(state),
        name=draw(TEXTS),
        decision_states=draw(_some_of(left)),
        timeouts=dict.fromkeys(draw(_some_of(left)), draw(st.integers(1, 9))),
        strict=draw(st.booleans()),
        final_states=final,
    )


def _some_of(states: list[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(states), max_size=2, unique=True) if states else st.just([])


@pytest.fixture(scope="session")
def random_charts() -> RandomCharts:
    """Return strategies for charts with any texts, guards that events decide, and one action."""
    return RandomCharts(_charts, GUARDS, {"note": note})


@pytest.fixture
def _faults_unheard() -> Iterator[None]:
    """Keep the faults of guards that a test causes by the thousand out of the output."""
    logger = logging.getLogger("prism.statechart")
    logger.disabled = True
    yield
    logger.disabled = False
