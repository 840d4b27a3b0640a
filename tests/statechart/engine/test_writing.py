"""Writing a transition into an agent."""

import tracemalloc
from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart import AgentState, Statechart, Transition

S = AgentState


@dataclass
class Plain:
    """Has the fields, and nothing that runs when they are written."""

    state: Any = S.IDLE
    ticks_in_state: int = 4
    state_history: Any = field(default_factory=list)
    max_history_depth: Any = 3


class Guarded(Plain):
    """Checks a field after it was set, as a validator may; refuses values in ``never``."""

    never: ClassVar[Any] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if (name, value) in self.never:
            raise ValueError(f"never {value!r}")


def chart(seen: list[Any] | None = None) -> Statechart[S]:
    action = None if seen is None else lambda agent, context: seen.append(context)
    go = Transition("go", S.IDLE, S.SCROLLING, action=action)
    return Statechart(S, [go, Transition("back", S.SCROLLING, S.IDLE)], S.IDLE)


def test_a_read_only_field_is_refused_before_the_action_runs() -> None:
    """The error is Python's, and nothing has changed; also if a tick finds it."""

    class FixedState(Plain):
        state = property(lambda fixed: S.IDLE)  # type: ignore[assignment]

        def __init__(self) -> None:
            self.ticks_in_state, self.state_history = 4, []

    class FixedTicks(Plain):
        ticks_in_state = property(lambda fixed: 4)  # type: ignore[assignment]

        def __init__(self) -> None:
            self.state, self.state_history = S.IDLE, []

    seen: list[Any] = []
    for cls in (FixedState, FixedTicks):
        agent = cls()
        with pytest.raises(AttributeError, match="has no setter"):
            chart(seen).fire(agent, "go")
        assert (agent.state, agent.ticks_in_state, agent.state_history) == (S.IDLE, 4, [])
    with pytest.raises(AttributeError, match="has no setter"):
        chart().tick(FixedTicks())
    assert not seen


@pytest.mark.parametrize(("field", "value"), [("state", S.SCROLLING), ("ticks_in_state", 0)])
def test_a_transition_that_a_field_refuses_is_taken_back(field: str, value: Any) -> None:
    """What a field's own code raises propagates, and nothing has changed, even if it was set."""
    agent = Plain(ticks_in_state=0, state_history=deque(maxlen=1))
    chart().fire(agent, "go")
    (old,) = agent.state_history

    class Strict(Guarded):
        never = ((field, value),)

    strict = Strict(state_history=agent.state_history)
    with pytest.raises(ValueError, match="never"):
        chart().fire(strict, "go")
    assert (strict.state, strict.ticks_in_state, [*strict.state_history]) == (S.IDLE, 4, [old])


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        (lambda self, new_state: None, "too many positional arguments"),
        (
            lambda self, new_state, trigger, context, when: None,
            "missing a required argument: 'when'",
        ),
        (lambda self, new_state, *, trigger, context: None, "too many positional arguments"),
    ],
)
def test_a_transition_to_that_cannot_be_called_is_refused(own: Any, problem: str) -> None:
    """The error shows how to define it, and comes before the action runs."""
    message = (
        rf"Odd.transition_to cannot write a transition \({problem}\): "
        r"define it as  def transition_to\(self, new_state,"
    )
    seen: list[Any] = []
    with pytest.raises(AgentError, match=message):
        chart(seen).fire(type("Odd", (), {"state": S.IDLE, "transition_to": own})(), "go")
    assert not seen


def test_fifty_records_fit_in_ten_kilobytes() -> None:
    """A full history with contexts takes less than the 10 KB that the specification allows."""

    class Kept(StatechartMixin):
        """Keeps its fields where the engine writes them."""

    agents, shared = [Kept() for _ in range(100)], chart()
    contexts = [{"post_id": f"post_{number}"} for number in range(50)]
    tracemalloc.start()
    try:
        for agent in agents:
            for number, context in enumerate(contexts):
                shared.fire(agent, "back" if number % 2 else "go", context)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(agents) < 10_000
