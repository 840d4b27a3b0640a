"""What classes declare, what is refused when they do, and values of fields from texts."""

from collections import deque
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any, ClassVar, Literal

import pytest

from prism import Run
from prism.errors import DefinitionError, FieldTypeError, FieldValueError
from prism.examples import Rumour, Schelling
from prism.examples.rumour import Mind, Person
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, param, state, uniform

Level = StrEnum("Level", ["LOW", "HIGH"])
"""States."""


CHART = Statechart(Level, [Transition("rises", Level.LOW, Level.HIGH)], Level.LOW, name="level")


class Grade(Enum):
    """An enum of numbers."""

    LOW = 1
    HIGH = 2


class Plain(Agent):
    """An agent with nothing but its chart."""

    chart = CHART
    kinds: ClassVar[int] = 1
    age: int


class Places(World[Plain]):
    """A world with a parameter of each kind."""

    NAMES = ("here", "there")
    size: int
    part: float = param(0.5, "a share", least=0, most=1)
    level: Level = Level.LOW
    grade: Grade | None = None
    open: bool = False
    name: str = "here"
    pair: tuple[int, ...] = ()
    mode: Literal["a", "b"] = "a"
    found: list[int] = state(list)

    def populate(self, agents: int) -> list[Plain]:
        """Make agents of one age."""
        return [Plain(age=4) for _ in range(agents)]


def test_agents_and_worlds_take_any_attribute() -> None:
    """They are ordinary objects: what nobody declared may be set, and is there."""
    world: Any = Places(size=1)
    world.talks = deque([1])
    agent: Any = Plain(age=3)
    agent.height = 3
    assert (world.talks[0], agent.height, agent.age) == (1, 3, 3)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Rumour(tirng=1), "no parameter 'tirng'; did you mean 'tiring'"),  # type: ignore[call-arg]
        (lambda: Schelling(town=None), "no parameter 'town': known are width"),
        (lambda: Places(), "Places needs size"),  # type: ignore[call-arg]
        (lambda: Person(trsut=1), "Person has no field 'trsut'; did you mean 'trust'"),  # type: ignore[call-arg]
    ],
)
def test_an_unknown_name_is_refused(make: Callable[[], Any], problem: str) -> None:
    """A misspelt or missing parameter is a TypeError that names those that there are."""
    with pytest.raises(TypeError, match=problem):
        make()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("size", "many", FieldTypeError),
        ("size", 3.5, FieldTypeError),
        ("part", "x", FieldTypeError),
        ("part", 1.5, FieldValueError),
        ("part", "1.5", FieldValueError),
        ("part", -1, FieldValueError),
        ("part", "nan", FieldValueError),
        ("level", "lowest", FieldTypeError),
        ("open", "perhaps", FieldTypeError),
        ("mode", "c", FieldTypeError),
    ],
)
def test_a_parameter_of_another_type_or_range_is_refused(
    name: str, value: Any, error: type[Exception]
) -> None:
    """Parameters are checked against their types and ranges."""
    with pytest.raises(error, match=rf"Places\.{name}: .* got {value!r}"):
        Places(**{"size": 3, name: value})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("size", "3", 3),
        ("part", "0.3", 0.3),
        ("part", "0", 0.0),
        ("part", 1, 1.0),
        ("open", "true", True),
        ("level", "high", Level.HIGH),
        ("grade", "2", Grade.HIGH),
        ("grade", "none", None),
        ("name", "none", "none"),
        ("pair", "[1, 2]", (1, 2)),
        ("pair", "1, 2", (1, 2)),
        ("mode", "b", "b"),
    ],
)
def test_a_text_is_read_by_the_type_of_its_parameter(name: str, text: Any, value: Any) -> None:
    """A text gives the value of the parameter's type."""
    read = getattr(Places(**{"size": 3, name: text}), name)
    assert (read, type(read)) == (value, type(value))


class Typed(Plain):
    """An agent with fields of several types."""

    age: int = 1
    part: float = param(0.5, least=0, most=1)
    level: Level | None = None
    height: float = 2
    items: list[float] = state(list)


class Drawn(Plain):
    """An agent whose whole number is drawn as a fraction."""

    age: int = uniform(1, 2)  # type: ignore[assignment]


def test_a_field_of_an_agent_gets_a_value_of_its_type() -> None:
    """What can be converted exactly is; whole numbers are numbers, and lists are kept."""
    given: Any = {"age": 3.0, "part": "0.25", "level": "high", "items": [1]}
    agent = Run(Places(size=1), [Typed(**given)]).agents[0]
    assert (repr(agent.age), agent.part, agent.level) == ("3", 0.25, Level.HIGH)
    assert repr(agent.height) == "2"
    assert agent.items is given["items"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Typed(age=3.5), r"Typed\.age: .* fractional part, got 3\.5"),  # type: ignore[arg-type]
        (lambda: Typed(age=None), r"Typed\.age: .* integer, got None"),  # type: ignore[arg-type]
        (lambda: Typed(part=1.5), r"Typed\.part: .* less than or equal to 1, got 1\.5"),
        (lambda: Typed(part=float("nan")), r"Typed\.part: .* got nan"),
        (lambda: Typed(level="low-"), r"Typed\.level: .* got 'low-'"),  # type: ignore[arg-type]
        (Drawn, r"Drawn\.age: .* fractional part, got 1\."),
        (Plain, r"Plain needs age: Plain\(age=...\)"),
    ],
)
def test_a_field_of_an_agent_of_another_type_or_range_is_refused(
    make: Callable[[], Plain], problem: str
) -> None:
    """Fields of agents are checked as parameters are, also those that are drawn."""
    with pytest.raises((FieldTypeError, FieldValueError), match=problem):
        _ = Run(Places(size=1), [make()]).agents


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            "class Hiding(World[Plain]): rounds: int = 5",
            "Hiding.rounds would hide what every World",
        ),
        (
            "from prism import measure\nclass Hiding(World[Plain]): count = measure(lambda _: 0)",
            "Hiding.count would hide what every World",
        ),
        ("class Hiding(Agent): state: str = 'Texas'", "Hiding.state would hide what every Agent"),
        ("class Sharing(Agent): items = []", r"\[\] would be shared by all .* state\(list\)"),
        ("class Sharing(Agent): items: bytearray = bytearray()", r"would be shared by all"),
        ("class Sharing(Agent): items: list = []", r"\[\] would be shared by all .* state\(list\)"),
        ("class Untyped(World[Plain]): growth = 0.4", "growth has no type: write  growth: float"),
        ("class Made(Agent): __init__ = lambda self: None", "Made.__init__: declare fields"),
        ("state([])", r"use state\(list\)"),
        ("param({})", "would be shared by all"),
        ("during()", "needs states of a chart, got none"),
        ("during('on')", "needs states of a chart, got 'on'"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(code: str, problem: str) -> None:
    """What could not work is refused when the class is defined."""
    with pytest.raises(DefinitionError, match=problem):
        exec(code, {**globals()})


class Endless(Agent):
    """A kind whose time-out has no limit."""

    chart = Statechart(Level, [Transition("timeout", Level.LOW, Level.HIGH)], Level.LOW)


class Chartless(Agent):
    """A kind without a chart."""


class Marked(Plain):
    """A kind with a mark, which works in worlds alone."""

    age: int = 3

    @during(Level.LOW)
    def grow(self, plain: Plain) -> None:
        """Do nothing."""


class Two(World[Plain]):
    """Two steps of one state, and one of a state that nobody has."""

    @during(Level.LOW, Mind.SPREADER)
    def one(self, plain: Plain) -> None:
        """Do nothing."""

    @during(Level.LOW)
    def other(self, plain: Plain) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("world", "make", "problems"),
    [
        (Two, Endless, ["Endless never times out in low: give the chart timeouts="]),
        (Two, Chartless, ["Chartless has no chart: set  chart = Statechart"]),
        (Two, Marked, ["Marked.grow belongs in the world's class"]),
        (
            Two,
            lambda: Plain(age=1),
            ["no agent's chart has the state <Mind.SPREADER", "two steps of a Plain in 'low'"],
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_the_run(
    world: type[World[Any]], make: Callable[[], Agent], problems: list[str]
) -> None:
    """An endless time-out, a missing chart, or steps that do not fit are all listed."""
    with pytest.raises(DefinitionError) as refused:
        _ = Run(world(), [make()]).agents
    assert [problem for problem in problems if problem not in str(refused.value)] == []
