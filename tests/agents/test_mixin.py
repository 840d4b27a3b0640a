"""The fields and methods of an agent."""

import copy
import pickle
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from prism.agents import StatechartMixin
from prism.errors import FieldTypeError, FieldValueError
from prism.statechart import AgentState, Statechart, StateTransition, Transition, state_enum

S = AgentState
CLONES = (copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent)))
MOOD = state_enum("Mood", ["calm", "cross"])


class Agent(StatechartMixin):
    """An agent that adds nothing."""


class Forgetful(StatechartMixin):
    """An agent whose class does not call super().__init__()."""

    def __init__(self, name: str) -> None:
        self.name = name


class Registered:
    """A base with its own ``__new__``."""

    def __new__(cls, name: str) -> Any:
        made = super().__new__(cls)
        made.made_with = name  # type: ignore[attr-defined]
        return made


class Both(StatechartMixin, Registered):
    """An agent whose base has its own ``__new__``."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass
class Data(StatechartMixin):
    """An agent that is a dataclass."""

    name: str = "x"


@dataclass(slots=True)
class Slotted(StatechartMixin):
    """A dataclass with slots, whose state a copy gets as a pair."""

    name: str = "x"


class Moody(StatechartMixin):
    """An agent with states of another enum."""

    state_type: ClassVar[Any] = MOOD


class Saving(StatechartMixin):
    """An agent with its own ``__getstate__``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scratch = object()

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name}


class Reduced(Forgetful):
    """An agent with its own ``__reduce__``."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)


class Counting(StatechartMixin):
    """An agent that overrides ``transition_to``."""

    moves = 0

    def transition_to(self, new_state: Any, trigger: str, context: Any = None) -> None:
        self.moves += 1
        super().transition_to(new_state, trigger, context)


def record(second: int) -> StateTransition:
    return StateTransition(
        S.IDLE, S.SCROLLING, "go", datetime(2026, 1, 30, 12, 0, second, tzinfo=UTC)
    )


@pytest.mark.parametrize("make", [Agent, lambda: Forgetful("x"), lambda: Both("x"), Data])
def test_fields_exist_with_their_defaults(make: Any) -> None:
    """A class with the mixin has all fields as soon as an object is made, whatever its bases."""
    agent = make()
    assert (agent.state, agent.state_memory, agent.ticks_in_state) == (S.IDLE, None, 0)
    assert (agent.engagement_threshold, agent.timeout_threshold) == (0.5, 5)
    assert agent.state_history == deque(maxlen=agent.max_history_depth)
    assert agent.max_history_depth == 50
    assert getattr(agent, "made_with", "x") == "x"


@pytest.mark.parametrize(
    ("make", "value"),
    [*((Agent, value) for value in ("idle", "flying", None, 3, MOOD("calm"))), (Moody, S.IDLE)],
)
def test_state_must_be_a_member(make: Any, value: Any) -> None:
    """A state outside the enum raises a TypeError that lists the members, and changes nothing."""
    agent, (first, second, *_) = make(), make.state_type
    assert agent.state is first
    agent.state = second
    enum = type(first).__name__
    message = rf"state must be a member of {enum}, got .*: use one of {first.name}, "
    with pytest.raises(TypeError, match=message) as caught:
        agent.state = value
    assert isinstance(caught.value, FieldTypeError)
    assert agent.state is second


@pytest.mark.parametrize("field", ["timeout_threshold", "max_history_depth"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "3", None, True])
def test_limits_must_be_above_zero(field: str, value: Any) -> None:
    """A time-out threshold or history depth that is not above 0 raises a ValueError."""
    agent = Agent()
    before = getattr(agent, field)
    with pytest.raises(
        ValueError, match=f"{field} must be a whole number, 1 or more, got"
    ) as caught:
        setattr(agent, field, value)
    assert isinstance(caught.value, FieldValueError)
    assert getattr(agent, field) == before


def test_history_is_bounded_by_its_depth() -> None:
    """A smaller depth, or a new history, keeps the newest records."""
    agent = Agent()
    agent.state_history = [record(second) for second in range(60)]  # type: ignore[assignment]
    assert len(agent.state_history) == 50
    agent.max_history_depth = 3
    assert [entry.timestamp.second for entry in agent.state_history] == [57, 58, 59]
    assert agent.state_history.maxlen == agent.max_history_depth == 3
    agent.state_history = [record(second) for second in range(9)]  # type: ignore[assignment]
    assert [entry.timestamp.second for entry in agent.state_history] == [6, 7, 8]
    with pytest.raises(FieldTypeError, match="keep other entries under another name"):
        agent.state_history = ["moved"]  # type: ignore[assignment,list-item]


def test_a_state_that_is_assigned_begins_its_time_anew() -> None:
    """That of time-outs, which are above the threshold and not at it, and that of timers."""
    agent, chart = Agent(), Statechart(S, [Transition("late", S.IDLE, S.RESTING, after=5)], S.IDLE)
    agent.timeout_threshold = 3
    ticks = [(chart.tick(agent), agent.is_timed_out()) for _ in range(4)]
    agent.state = S.IDLE
    assert ticks == [*[(None, False)] * 3, (None, True)]
    assert agent.ticks_in_state == 0
    assert [chart.tick(agent) for _ in range(5)] == [*[None] * 4, S.RESTING]


def test_a_class_may_override_transition_to() -> None:
    """A chart calls an overridden transition_to once for each transition."""
    agent = Counting()
    chart = Statechart(
        S, [Transition("go", S.IDLE, S.RESTING), Transition("again", S.RESTING, S.RESTING)], S.IDLE
    )
    agent.ticks_in_state = 4
    chart.fire(agent, "go", {"post_id": "p1"})
    chart.fire(agent, "again")
    assert agent.moves == 1
    assert (agent.state, agent.ticks_in_state) == (S.RESTING, 0)
    assert [entry.context for entry in agent.state_history] == [{"post_id": "p1"}]


@pytest.mark.parametrize("name", ["state", "ticks_in_state", "state_history", "max_history_depth"])
def test_a_class_may_override_a_field(name: str) -> None:
    """A chart reads and writes a property of the class where it would the mixin's field."""
    usual = getattr(StatechartMixin, name)
    used = []

    def get(agent: Any) -> Any:
        used.append(name)
        return usual.fget(agent)

    cls: Any = type("Own", (StatechartMixin,), {name: property(get, usual.fset)})
    agent = cls()
    Statechart(S, [Transition("go", S.IDLE, S.RESTING)], S.IDLE).fire(agent, "go")
    assert used
    assert (agent.state, len(agent.state_history)) == (S.RESTING, 1)


class Global(StatechartMixin):
    def __reduce__(self) -> str:
        return "GLOBAL"


GLOBAL = Global()


@pytest.mark.parametrize("clone", CLONES)
def test_copies_include_fields_that_getstate_omits(clone: Any) -> None:
    """A copy has the mixin's fields even if the class omits them; a global object is its own."""
    assert clone(GLOBAL) is GLOBAL
    agent = Saving("Ada")
    agent.max_history_depth = 4
    agent.transition_to(S.SCROLLING, "go")
    twin = clone(agent)
    assert vars(twin) == {key: value for key, value in vars(agent).items() if key != "scratch"}
    assert twin.state_history.maxlen == 4


class Row(Forgetful):
    """An agent whose ``__reduce__`` gives all of its fields away, as Django's does."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,), vars(self)


@pytest.mark.parametrize("clone", CLONES)
@pytest.mark.parametrize(
    "agent", [Agent(), Data(), Slotted(), Saving("Ada"), Row("Ada"), Reduced("Ada")]
)
def test_no_copy_shares_a_history_or_a_memory(agent: Any, clone: Any) -> None:
    """What a copy does is not written into the agent that it was made of."""
    agent.state_memory = {"history": {"scrolling": ["idle"]}}
    twin = clone(agent)
    twin.transition_to(S.SCROLLING, "go")
    twin.state_memory["history"]["scrolling"].append("resting")
    assert (len(agent.state_history), len(twin.state_history)) == (0, 1)
    assert agent.state_memory == {"history": {"scrolling": ["idle"]}}


def test_the_charts_memory_is_never_that_of_another_object() -> None:
    """Also if the class looks up in the other object whatever it lacks."""
    other = Agent()
    other.state_memory = {"ticks": 1}

    class Wrapper(Agent):
        def __getattr__(self, name: str) -> Any:
            return getattr(other, name)

    agent = Wrapper()
    assert agent.state_memory is None
    agent.state_memory = None
    agent.state_memory = {"ticks": 2}
    agent.state_memory = None
    assert agent.state_memory is None
    assert other.state_memory == {"ticks": 1}
