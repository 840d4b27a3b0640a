"""The fields and methods of an agent."""

import copy
import copyreg
import itertools
import json
import pickle
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from prism.agents._mixin import StatechartMixin
from prism.agents.social_agent import SocialAgent
from prism.errors import AgentError, FieldTypeError, FieldValueError
from prism.statechart import AgentState, Statechart, StateTransition, Transition, state_enum

S = AgentState
CLONES = (copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent)))
MOOD = state_enum("Mood", ["calm", "cross"])


class Agent(StatechartMixin):
    """An agent that adds nothing."""


class Forgetful(StatechartMixin):
    """An agent whose class does not call super().__init__()."""

    def __init__(self, name: str) -> None:
        self.name = name


class Made:
    """A base that makes its objects itself."""

    def __new__(cls, name: str) -> Any:
        made = super().__new__(cls)
        made.made_with = name  # type: ignore[attr-defined]
        return made


class Both(StatechartMixin, Made):
    """An agent on a base that makes its objects itself."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass
class Data(StatechartMixin):
    """An agent that is a dataclass."""

    name: str = "x"


class Moody(StatechartMixin):
    """An agent with states of its own."""

    state_type: ClassVar[Any] = MOOD


class Hasty(StatechartMixin):
    """An agent whose class sets other defaults."""

    timeout_threshold = 1
    max_history_depth = 2


class Saving(StatechartMixin):
    """An agent whose class says itself what is saved."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scratch = object()

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name}


class Open(StatechartMixin):
    """An agent whose class compares, prints and saves all that it finds in itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def seen(self) -> dict[str, Any]:
        return vars(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Open) and self.seen() == other.seen()

    def __hash__(self) -> int:
        return hash(tuple(self.seen().values()))

    def __repr__(self) -> str:
        return repr(self.seen())

    def to_json(self) -> str:
        return json.dumps(self.seen())


class Discreet(Open):
    """The same, without what others keep in it."""

    def seen(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class Reduced(Forgetful):
    """An agent whose class says how it is made again."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)


class ReducedEx(Forgetful):
    """An agent whose class says how it is made again, for every protocol."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.name,)


class Copied(Forgetful):
    """An agent whose class says how it is copied."""

    def __copy__(self) -> Any:
        return type(self)(self.name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return type(self)(self.name)


class Counting(StatechartMixin):
    """An agent that adds to the one write path."""

    moves = 0

    def transition_to(self, new_state: Any, trigger: str, context: Any = None) -> None:
        self.moves += 1
        super().transition_to(new_state, trigger, context)


def record(second: int) -> StateTransition:
    return StateTransition(
        S.IDLE, S.SCROLLING, "go", datetime(2026, 1, 30, 12, 0, second, tzinfo=UTC)
    )


@pytest.mark.parametrize("make", [Agent, lambda: Forgetful("x"), lambda: Both("x"), Data])
def test_fields_are_there_with_their_defaults(make: Any) -> None:
    """Every class that takes the mixin has all fields as soon as an object is made."""
    agent = make()
    assert agent.state is S.IDLE
    assert (agent.ticks_in_state, agent.engagement_threshold, agent.timeout_threshold) == (
        0,
        0.5,
        5,
    )
    assert agent.max_history_depth == 50
    assert agent.state_history == deque(maxlen=50)


def test_a_base_that_makes_its_objects_is_asked() -> None:
    """The mixin passes the constructor's arguments on to a base with a __new__ of its own."""
    assert Both("x").made_with == "x"


def test_agents_do_not_share_their_history() -> None:
    """Each agent has a history of its own."""
    first, second = Agent(), Agent()
    first.transition_to(S.RESTING, "go")
    assert len(second.state_history) == 0


@pytest.mark.parametrize("value", ["idle", "flying", None, 3, MOOD("calm")])
def test_state_must_be_a_member(value: Any) -> None:
    """A state that is no member of the enum is a TypeError that lists the members, and nothing has changed."""
    agent = Agent()
    with pytest.raises(
        TypeError,
        match=r"state must be a member of AgentState, got .*: use one of AgentState.IDLE, ",
    ) as caught:
        agent.state = value
    assert isinstance(caught.value, FieldTypeError)
    assert agent.state is S.IDLE


@pytest.mark.parametrize("value", [-1, 1.5, "3", None, True])
def test_ticks_must_not_be_negative(value: Any) -> None:
    """Ticks that are no whole number from 0 on are a ValueError that says what is allowed."""
    agent = Agent()
    with pytest.raises(
        ValueError, match="ticks_in_state must be a whole number from 0 on, got"
    ) as caught:
        agent.ticks_in_state = value
    assert isinstance(caught.value, FieldValueError)
    assert agent.ticks_in_state == 0


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "0.5", None, True])
def test_engagement_threshold_is_a_share(value: Any) -> None:
    """An engagement threshold outside 0.0 to 1.0 is a ValueError that says what is allowed."""
    agent = Agent()
    with pytest.raises(
        ValueError, match=r"engagement_threshold must be a number from 0.0 to 1.0, got"
    ) as caught:
        agent.engagement_threshold = value
    assert isinstance(caught.value, FieldValueError)
    assert agent.engagement_threshold == 0.5


@pytest.mark.parametrize("field", ["timeout_threshold", "max_history_depth"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "3", None, True])
def test_limits_must_be_above_zero(field: str, value: Any) -> None:
    """A time-out threshold or history depth that is no whole number above 0 is a ValueError that says so."""
    agent = Agent()
    before = getattr(agent, field)
    with pytest.raises(
        ValueError, match=f"{field} must be a whole number from 1 on, got"
    ) as caught:
        setattr(agent, field, value)
    assert isinstance(caught.value, FieldValueError)
    assert getattr(agent, field) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state", S.RESTING),
        ("ticks_in_state", 0),
        ("ticks_in_state", 7),
        ("engagement_threshold", 0),
        ("engagement_threshold", 1.0),
        ("timeout_threshold", 1),
        ("max_history_depth", 1),
    ],
)
def test_fields_take_what_is_in_range(field: str, value: Any) -> None:
    """Every value within a field's range, bounds included, is kept."""
    agent = Agent()
    setattr(agent, field, value)
    assert getattr(agent, field) == value


def test_history_is_bounded_by_its_depth() -> None:
    """Another depth, and another history, keep the newest records."""
    agent = Agent()
    agent.state_history = [record(second) for second in range(60)]  # type: ignore[assignment]
    assert len(agent.state_history) == 50
    agent.max_history_depth = 3
    assert [entry.timestamp.second for entry in agent.state_history] == [57, 58, 59]
    assert agent.state_history.maxlen == agent.max_history_depth == 3


def test_ticks_pass() -> None:
    """An agent is timed out strictly after its threshold."""
    agent = Agent()
    assert [agent.tick() for _ in range(5)] == [1, 2, 3, 4, 5]
    assert not agent.is_timed_out()
    agent.tick()
    assert agent.is_timed_out()


def test_a_move_is_recorded() -> None:
    """transition_to sets the state, resets the ticks, and records move, time and identified context."""
    agent = Agent()
    agent.ticks_in_state = 4
    agent.transition_to(S.SCROLLING, "feed_ready", SimpleNamespace(post_id="p1"))
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    (entry,) = agent.state_history
    assert (entry.from_state, entry.to_state, entry.trigger) == (S.IDLE, S.SCROLLING, "feed_ready")
    assert entry.context == {"post_id": "p1"}
    assert timedelta(0) <= datetime.now(UTC) - entry.timestamp < timedelta(minutes=5)


def test_a_move_to_the_same_state_is_not_recorded() -> None:
    """A move to the current state changes and records nothing."""
    agent = Agent()
    agent.ticks_in_state = 4
    agent.transition_to(S.IDLE, "again")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (S.IDLE, 4, 0)


@pytest.mark.parametrize("value", ["idle", "scrolling", None])
def test_a_move_to_no_state_is_refused(value: Any) -> None:
    """A move to something that is no member is a TypeError, and nothing has changed."""
    agent = Agent()
    agent.ticks_in_state = 4
    with pytest.raises(TypeError, match="state must be a member of AgentState"):
        agent.transition_to(value, "go")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (S.IDLE, 4, 0)


def test_records_of_repeated_moves_share_their_edge() -> None:
    """Records written by transition_to are as compact as those of a chart."""
    agent = Agent()
    for _ in range(2):
        agent.transition_to(S.SCROLLING, "go", {"post_id": "p1"})
        agent.transition_to(S.IDLE, "back")
    assert agent.state_history[0]._edge is agent.state_history[2]._edge


def test_an_agent_may_have_states_of_its_own() -> None:
    """A class that names another enum starts in its first member and takes only its members."""
    agent = Moody()
    assert agent.state is MOOD("calm")
    agent.state = MOOD("cross")
    with pytest.raises(
        FieldTypeError, match=r"state must be a member of Mood, got .*: use one of Mood.S0, Mood.S1"
    ):
        agent.state = S.IDLE


def test_a_class_may_set_other_defaults() -> None:
    """Defaults that a class sets are those that ticks, time-outs and history go by."""
    agent = Hasty()
    chart = Statechart(
        S, [Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE)], S.IDLE
    )
    for _ in range(5):
        chart.fire(agent, "go")
    assert len(agent.state_history) == 2
    agent.tick()
    assert not agent.is_timed_out()
    agent.tick()
    assert agent.is_timed_out()


def test_a_class_may_add_to_transition_to() -> None:
    """A class that overrides transition_to is written through it, once a move."""
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


def test_a_class_that_goes_through_all_its_names_sees_five_more() -> None:
    """A class that compares, prints and saves all of vars(self) sees the fields, and JSON cannot hold one of them."""
    agent = Open("Ada")
    agent.transition_to(S.RESTING, "go")
    assert [name for name in agent.seen() if name.startswith("_")] == list(agent.seen())[:5]
    assert list(agent.seen())[5:] == ["name"]
    assert agent != Open("Ada")
    assert "'_state': <AgentState.RESTING" in repr(agent)
    with pytest.raises(TypeError, match="deque is not JSON serializable"):
        agent.to_json()


def test_a_class_may_leave_out_what_begins_with_an_underscore() -> None:
    """A class that leaves out names with an underscore compares, hashes, prints and saves as without the mixin."""
    agent = Discreet("Ada")
    agent.transition_to(S.RESTING, "go")
    agent.tick()
    agent.timeout_threshold, agent.engagement_threshold, agent.max_history_depth = 9, 0.9, 4
    assert agent == Discreet("Ada")
    assert agent != Discreet("Bo")
    assert hash(agent) == hash(Discreet("Ada"))
    assert (repr(agent), agent.to_json()) == ("{'name': 'Ada'}", '{"name": "Ada"}')


@pytest.mark.parametrize(
    ("cls", "clone"),
    [
        *itertools.product((Reduced, ReducedEx), (copy.copy, *CLONES)),
        (Copied, copy.copy),
        (Copied, copy.deepcopy),
    ],
)
def test_a_class_may_say_how_it_is_made_again(cls: Any, clone: Any) -> None:
    """A class with its own way to be copied or pickled is made so, in the first state."""
    agent = cls("Ada")
    agent.transition_to(S.RESTING, "go")
    twin = clone(agent)
    assert (type(twin), twin.name, twin.state, len(twin.state_history)) == (cls, "Ada", S.IDLE, 0)


@pytest.mark.parametrize("clone", CLONES)
def test_a_class_that_names_what_is_saved_keeps_its_state(clone: Any) -> None:
    """A copy of an agent whose class writes only its own fields has the mixin's fields, too."""
    agent = Saving("Ada")
    agent.max_history_depth = 4
    agent.transition_to(S.SCROLLING, "go")
    twin = clone(agent)
    assert vars(twin) == {key: value for key, value in vars(agent).items() if key != "scratch"}
    assert twin.state_history is not agent.state_history
    assert twin.state_history.maxlen == 4


def test_a_class_that_saves_everything_is_saved_once() -> None:
    """An agent whose class writes the mixin's fields with its own is pickled as it is."""
    plain = Agent()
    saving = SocialAgent("ada")
    assert plain.__reduce_ex__(5)[:2] == (copyreg.__newobj__, (Agent,))  # type: ignore[attr-defined]
    assert saving.__reduce_ex__(5)[:2] == (copyreg.__newobj__, (SocialAgent,))  # type: ignore[attr-defined]


def test_a_frozen_class_is_refused() -> None:
    """A class that lets nothing be set is an error that says what to do, when its first object is made."""

    class Frozen(StatechartMixin):
        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"cannot assign to {name}")

    with pytest.raises(
        AgentError, match=r"Frozen is frozen \(cannot assign to _state\): let an agent with"
    ):
        Frozen()


@pytest.mark.parametrize("clone", CLONES)
def test_an_agent_can_be_copied_and_pickled(clone: Any) -> None:
    """A copy has the same fields and a history of its own, with the same bound."""
    agent = Agent()
    agent.max_history_depth = 4
    agent.transition_to(S.SCROLLING, "go", {"post_id": "p1"})
    twin = clone(agent)
    assert vars(twin) == vars(agent)
    twin.transition_to(S.IDLE, "back")
    assert (len(agent.state_history), len(twin.state_history), twin.state_history.maxlen) == (
        1,
        2,
        4,
    )
