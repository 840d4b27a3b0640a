"""Writing a move into an agent."""

import tracemalloc
from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart._engine.writing import (
    count_tick,
    make_record,
    write_kept,
    write_plain,
    writer_of,
)
from prism.statechart._identity import agent_name
from prism.statechart.states import AgentState
from prism.statechart.transitions import Edge, StateTransition

S = AgentState
GO = Edge(S.IDLE, S.SCROLLING, "go")


class Kept(StatechartMixin):
    """Keeps its fields where the engine writes them."""


class Own:
    """Writes itself."""

    def __init__(self) -> None:
        self.state, self.ticks_in_state, self.moves = S.IDLE, 4, []

    def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
        self.state = new_state
        self.moves.append((new_state, trigger, context))


@dataclass
class Plain:
    """Has the fields, and nothing that runs when they are written."""

    state: Any = S.IDLE
    ticks_in_state: int = 4
    state_history: Any = field(default_factory=list)
    max_history_depth: int = 3


class Guarded(Plain):
    """Checks a field after it was set, as a validator may; refuses values in ``never``."""

    never: ClassVar[Any] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if (name, value) in self.never:
            raise ValueError(f"never {value!r}")


class Full(list[Any]):
    """A history that takes no more."""

    def append(self, record: Any) -> None:
        raise OSError("no more")


def test_an_object_that_takes_no_state_is_refused() -> None:
    """An object whose state is read only is an error that says what to do, and has not changed."""

    class Fixed(Plain):
        state = property(lambda fixed: S.IDLE)  # type: ignore[assignment]

        def __init__(self) -> None:
            self.ticks_in_state, self.state_history = 4, []

    agent = Fixed()
    with pytest.raises(
        AgentError,
        match=r"Fixed rejects a new state \(.+\): keep the frozen value .* transition_to",
    ):
        write_plain(agent, GO, 0.0, None)
    assert (agent.state, agent.ticks_in_state, agent.state_history) == (S.IDLE, 4, [])


@pytest.mark.parametrize(("field", "value"), [("state", S.SCROLLING), ("ticks_in_state", 0)])
def test_a_move_that_a_field_refuses_is_taken_back(field: str, value: Any) -> None:
    """What a field's own code raises gets a note, and nothing has changed, even if it was set."""

    class Strict(Guarded):
        never = ((field, value),)

    old = make_record(GO, 0.0, None)
    agent = Strict(state_history=deque([old], maxlen=1))
    with pytest.raises(ValueError, match="never") as caught:
        write_plain(agent, GO, 1.0, None)
    assert (agent.state, agent.ticks_in_state, list(agent.state_history)) == (S.IDLE, 4, [old])
    assert caught.value.__notes__ == [
        f"Strict rejected what prism wrote into '{field}' and is unchanged; if it is frozen, "
        "keep it in a field of an agent with StatechartMixin"
    ]


def test_ticks_that_cannot_be_written_are_refused() -> None:
    """An object whose ticks are read only is an error with a way out, and has not changed."""

    class Fixed(Plain):
        ticks_in_state = property(lambda fixed: 4)  # type: ignore[assignment]

        def __init__(self) -> None:
            self.state, self.state_history = S.IDLE, []

    agent = Fixed()
    for write in (lambda: write_plain(agent, GO, 0.0, None), lambda: count_tick(agent, 4)):
        with pytest.raises(
            AgentError, match=r"Fixed rejects a new ticks_in_state \(.+\): keep the frozen value"
        ) as caught:
            write()
        assert isinstance(caught.value.__cause__, AttributeError)
    assert (agent.state, agent.ticks_in_state, agent.state_history) == (S.IDLE, 4, [])


def test_a_history_may_raise() -> None:
    """What the user's own history raises propagates, and state and ticks are as before."""
    agent = Plain(state_history=Full())
    with pytest.raises(OSError, match="no more") as caught:
        write_plain(agent, GO, 0.0, None)
    assert (agent.state, agent.ticks_in_state) == (S.IDLE, 4)
    assert "rejected what prism wrote into 'state_history'" in caught.value.__notes__[0]


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
def test_a_transition_to_with_other_arguments_is_refused(own: Any, problem: str) -> None:
    """A transition_to with other arguments is an error that shows how to define it."""
    message = (
        rf"Odd.transition_to cannot write a transition \({problem}\): "
        r"define it as  def transition_to\(self, new_state,"
    )
    with pytest.raises(AgentError, match=message):
        writer_of(type("Odd", (), {"transition_to": own}))


def test_an_async_transition_to_is_refused() -> None:
    """A transition_to that would have to be awaited is an error before it is called."""

    class Later(Own):
        async def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
            self.state = new_state

    with pytest.raises(AgentError, match="it is async, but transitions are synchronous"):
        writer_of(Later)


@pytest.mark.parametrize("depth", ["3", [], object])
def test_a_depth_that_is_no_number_counts_as_none_given(depth: Any) -> None:
    """What a mock or somebody else has under that name keeps no transition from being made."""
    agent = Plain(max_history_depth=depth)
    for time in range(60):
        agent.state = S.IDLE
        write_plain(agent, GO, float(time), None)
    assert len(agent.state_history) == 50


@pytest.mark.parametrize(
    "context", [None, {}, {"post_id": "p1"}, {"a": 1, "b": [2]}, "text", SimpleNamespace(id=3)]
)
def test_quick_records_equal_constructed_ones(context: Any) -> None:
    """A record made from a chart's edge equals one made by the public constructor."""
    quick = make_record(GO, 1_000_000.25, context)
    assert quick == StateTransition(S.IDLE, S.SCROLLING, "go", quick.timestamp, context)


def test_fifty_records_fit_in_ten_kilobytes() -> None:
    """A full history with contexts takes less than the 10 KB that the specification allows."""
    agents = [Kept() for _ in range(100)]
    contexts = [{"post_id": f"post_{number}"} for number in range(50)]
    tracemalloc.start()
    try:
        for agent in agents:
            for number, context in enumerate(contexts):
                agent.state = S.IDLE
                write_kept(agent, GO, 1.7e9 + number, context)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(agents) < 10_000


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (SimpleNamespace(agent_id="a1", unique_id=2, id=3, name="x"), "a1"),
        (SimpleNamespace(unique_id=2, id=3, name="x"), "2"),
        (SimpleNamespace(id=0, name="x"), "0"),
        (type("HelpTicket", (), {"help_ticket_id": "t7", "name": "x"})(), "t7"),
        (SimpleNamespace(agent_id=None, name="x"), "x"),
    ],
)
def test_an_agent_is_called_by_its_identifier(agent: Any, name: str) -> None:
    """Logs call an agent by the first identifier it has."""
    assert agent_name(agent) == name


def test_an_agent_without_identifier_is_called_by_class_and_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One warning says how it gets a name by which it can be found again."""

    class Ticket:
        state = S.IDLE

    agents = [Ticket() for _ in range(3)]
    assert [*map(agent_name, agents)] == [f"Ticket@{id(agent):x}" for agent in agents]
    (told,) = (record.getMessage() for record in caplog.records)
    assert "a Ticket has no agent_id, unique_id, id, ticket_id or name" in told
