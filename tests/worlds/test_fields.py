"""What classes declare, what is refused when they do, and values of fields from texts."""

from collections import deque
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any, ClassVar, Literal

import pytest

from prism import Run
from prism.errors import AgentError, DefinitionError, FieldTypeError, FieldValueError
from prism.examples import Rumour, Schelling
from prism.examples.rumour import Mind, Person
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Thing, World, during, measure, one_of, param, state, uniform, whole
from prism.worlds._fields import plain_value, read_value
from tests.kit.medley import Note, Walker


class Level(StrEnum):
    """States."""

    LOW = "low"
    HIGH = "high"


CHART = Statechart(Level, [Transition("rises", Level.LOW, Level.HIGH)], Level.LOW, name="level")


class Plain(Agent):
    """An agent with nothing but its chart."""

    chart = CHART
    kinds: ClassVar[int] = 1
    age: int


class Places(World[Plain]):
    """A world with a parameter of each kind."""

    size: int
    part: float = param(0.5, "a share", least=0, most=1)
    level: Level = Level.LOW
    open: bool = False
    name: str = "here"
    found: list[int] = state(list)

    def populate(self, agents: int) -> list[Plain]:
        """Make agents of one age."""
        return [Plain(age=4) for _ in range(agents)]


def test_fields_have_slots_and_nothing_else_does() -> None:
    """An agent takes the fields that its class declares, and no others."""
    agent = Plain(age=3)
    assert not hasattr(agent, "__dict__")
    with pytest.raises(AttributeError):
        agent.height = 3  # type: ignore[attr-defined]


def test_a_field_that_is_not_declared_says_how_to_declare_it() -> None:
    """Reading or writing what nobody declared tells what to write."""
    world: Any = Rumour()
    with pytest.raises(AttributeError, match=r"Rumour has no field 'talks'.* talks: int = state"):
        world.talks = 1
    _ = Run(world, 10).agents
    with pytest.raises(AttributeError, match=r"Rumour has no field 'talks' \(did you mean 'talk'"):
        world.talks += 1


@pytest.mark.parametrize("name", ["add", "remove"])
def test_a_population_is_not_changed_during_a_run(name: str) -> None:
    """Who looks for the method of other libraries is told that there is none, and what there is."""
    world: Any = Rumour()
    with pytest.raises(AttributeError, match="the population is fixed when a run begins: give"):
        getattr(world, name)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Rumour(tirng=1), "no parameter 'tirng': it has the parameters friends, rewired, "),  # type: ignore[call-arg]
        (lambda: Schelling(town=None), "Schelling.town is state, not a parameter"),
        (lambda: Places(), "Places needs size"),  # type: ignore[call-arg]
        (lambda: Note(), "Note needs text"),  # type: ignore[call-arg]
        (lambda: Person(trsut=1), "Person has no field 'trsut'.*did you mean 'trust'"),  # type: ignore[call-arg]
    ],
)
def test_an_unknown_name_is_refused(make: Callable[[], Any], problem: str) -> None:
    """A misspelt or missing parameter is a TypeError that names those that there are."""
    with pytest.raises(TypeError, match=problem):
        make()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("size", "3", FieldTypeError),
        ("size", 3.0, FieldTypeError),
        ("size", True, FieldTypeError),
        ("part", "x", FieldTypeError),
        ("part", True, FieldTypeError),
        ("part", 1.5, FieldValueError),
        ("part", -1, FieldValueError),
        ("part", float("nan"), FieldValueError),
        ("level", "low", FieldTypeError),
        ("open", 1, FieldTypeError),
    ],
)
def test_a_parameter_of_another_type_or_range_is_refused(
    name: str, value: Any, error: type[Exception]
) -> None:
    """Parameters are checked against their types and ranges."""
    with pytest.raises(error, match=f"Places.{name} must be"):
        Places(**{"size": 3, name: value})


def test_a_whole_number_is_a_float() -> None:
    """A parameter that is a float takes a whole number."""
    assert Places(size=3, part=1).part == 1


def test_a_field_without_a_value_names_the_agent_class() -> None:
    """A required field that nobody gave is told when the agent joins a run."""
    with pytest.raises(AgentError, match=r"Plain.age has no value: give it one, Plain\(age=...\)"):
        _ = Run(Places(size=1), [Plain()]).agents  # type: ignore[call-arg]


def test_draws_lie_in_their_ranges() -> None:
    """Drawn fields lie where they were declared to, and given ones are left alone."""
    people = [Walker(ease=7.0), *(Walker() for _ in range(200))]

    class Park(World[Walker]):
        """A world of walkers."""

    agents = Run(Park(), people).agents
    assert agents[0].ease == 7.0
    assert all(0 <= each.ease < 1 for each in agents[1:])
    assert {each.size for each in agents} == set(range(2, 10))
    assert len({each.colour for each in agents}) == 3


def define_shared_default() -> None:
    """Declare a list that all would share."""

    class Sharing(Thing):
        """Wrong."""

        items: list[int] = []  # noqa: RUF012


def define_no_type() -> None:
    """Declare a field without its type."""

    class Untyped(Thing):
        """Wrong."""

        items = state(list)


def define_constructor() -> None:
    """Declare a constructor."""

    class Constructed(Agent):
        """Wrong."""

        def __init__(self) -> None:
            """Do what is not done again."""


def define_open_base() -> None:
    """Derive from a class whose objects take any attribute."""

    class Mixin:
        """No slots."""

    class Opened(Mixin, Agent):
        """Wrong."""

        chart = CHART


def define_hiding_fields() -> None:
    """Declare fields with the names of what every world has."""

    class Hiding(World[Plain]):
        """Wrong."""

        rounds: int = 5  # type: ignore[misc]
        agents: int = 7  # type: ignore[assignment]


def define_hidden_chart() -> None:
    """Give the chart a type."""

    class Charted(Agent):
        """Wrong."""

        chart: Any = CHART  # type: ignore[misc]


@pytest.mark.parametrize(
    ("define", "problem"),
    [
        (define_hiding_fields, "hide World.rounds: set it without a type, rounds = ...; the field"),
        (define_hiding_fields, "Hiding.agents would hide World.agents: give it another name"),
        (define_hidden_chart, "hide Agent.chart: set it without a type, chart = ..."),
        (define_shared_default, r"Sharing.items: the list \[\] would be shared .* state\(list\)"),
        (define_no_type, "Untyped.items needs its type"),
        (define_constructor, "Constructed.__init__ would not run again on resuming"),
        (define_open_base, r"since Mixin has no slots: write  __slots__ = \(\)  there"),
        (lambda: state([]), r"use state\(list\)"),
        (lambda: param({}), "would be shared by all"),
        (lambda: uniform(2, 1), "the first must not be the larger"),
        (lambda: whole(2, 1), "the first must not be the larger"),
        (lambda: one_of(), "needs something to draw from"),
        (lambda: during(), "names no state"),
        (lambda: during("on"), "needs states of a chart, got 'on'"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(
    define: Callable[[], Any], problem: str
) -> None:
    """What could not work is refused when the class is defined."""
    with pytest.raises(DefinitionError, match=problem):
        define()


class WithSet(Agent):
    """A kind with a set."""

    chart = CHART
    by: set[str] = state(dict)  # type: ignore[assignment]
    of: dict[str, list[set[int]]] = state(dict)


class SetWorld(World[WithSet]):
    """A world of them."""


class Misfit(Agent):
    """A kind whose defaults are not of their types, except for those that may be."""

    chart = CHART
    age: int = state("none")  # type: ignore[assignment]
    mood: str = 3  # type: ignore[assignment]
    pace: float = state(1)
    near: Agent = state(None)  # type: ignore[assignment]


class MisfitWorld(World[Misfit]):
    """A world of them."""


class Endless(Agent):
    """A kind whose time-out has no limit."""

    chart = Statechart(Level, [Transition("timeout", Level.LOW, Level.HIGH)], Level.LOW)


class Chartless(Agent):
    """A kind without a chart."""


class Two(World[Plain]):
    """Two steps of one state, and one of a state that nobody has."""

    @during(Level.LOW, Mind.SPREADER)
    def one(self, plain: Plain) -> None:
        """Do nothing."""

    @during(Level.LOW)
    def other(self, plain: Plain) -> None:
        """Do nothing."""


class Misshapen(World[Plain]):
    """Methods with the wrong arguments."""

    @during(Level.LOW)
    def lonely(self) -> None:
        """Take no agent."""

    @measure
    async def slow(self) -> float:
        """Be async."""
        return 0.0

    async def round_begins(self) -> None:  # type: ignore[override]
        """Be async."""

    @measure
    def count(self) -> int:  # type: ignore[override]
        """Have the name of a method of every world."""
        return 0


@pytest.mark.parametrize(
    ("world", "make", "problems"),
    [
        (SetWorld, WithSet, ["WithSet.by: set[str] cannot be kept: use dict[str, None]", "of: "]),
        (
            MisfitWorld,
            Misfit,
            ["Misfit.age must be int, got 'none'; Misfit.mood must be str, got 3"],
        ),
        (Two, Endless, ["Endless never times out in low: give the chart timeouts="]),
        (Two, Chartless, ["Chartless has no chart: set  chart = Statechart"]),
        (
            Two,
            lambda: Plain(age=1),
            ["states that no agent's chart has: <Mind.SPREADER", "two steps of a Plain in 'low'"],
        ),
        (
            Misshapen,
            lambda: Plain(age=1),
            [
                ", in Misshapen.lonely: Misshapen.lonely must take only self and an agent",
                "slow is async",
                "round_begins is async",
                "Misshapen.count would hide World.count",
            ],
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_the_run(
    world: type[World[Any]], make: Callable[[], Agent], problems: list[str]
) -> None:
    """A set, an endless time-out, a missing chart, or steps that do not fit are all listed."""
    with pytest.raises(DefinitionError) as refused:
        _ = Run(world(), [make()]).agents
    assert [problem for problem in problems if problem not in str(refused.value)] == []


def test_a_type_that_cannot_be_found_leaves_the_others_their_checks() -> None:
    """A type of a function, or for type checkers alone, is any type; a step of it is for all."""

    class Hidden(Plain):
        """A kind that only this function knows."""

    class Here(Places):
        size: int = 1
        best: "Hidden | None" = state(None)

        @during(Level.LOW)
        def step(self, plain: "Hidden") -> None:
            self.best = plain

    with pytest.raises(FieldTypeError, match=r"Here.size must be int, got 'x'"):
        Here(size="x")  # type: ignore[arg-type]
    run = Run(Here(), 1, rounds=1)
    run.run()
    assert run.world.best is run.agents[0]


class Grade(Enum):
    """An enum of numbers."""

    LOW = 1
    HIGH = 2


class Mood(StrEnum):
    """An enum of texts."""

    CALM = "quite calm"


READ: list[tuple[Any, Any, Any]] = [
    (int, "3", 3),
    (float, "0.3", 0.3),
    (float, 3, 3),
    (bool, "Yes", True),
    (bool, "false", False),
    (str, "none", "none"),
    (Grade, "HIGH", Grade.HIGH),
    (Grade, "2", Grade.HIGH),
    (Grade, 2, Grade.HIGH),
    (Grade, Grade.LOW, Grade.LOW),
    (Mood, "quite calm", Mood.CALM),
    (Mood, "CALM", Mood.CALM),
    (Literal["a", 2], "a", "a"),
    (Literal["a", 2], "2", 2),
    (int | None, "none", None),
    (int | None, None, None),
    (int | None, "7", 7),
    (str | int, "7", 7),
    (str | int, "seven", "seven"),
    (Grade | None, "LOW", Grade.LOW),
    (list[int], "[1, 2]", [1, 2]),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[int, Grade], "[1, 2]", (1, Grade.HIGH)),
    (deque[int], [1], deque([1])),
    (list[Grade], [1, "HIGH"], [Grade.LOW, Grade.HIGH]),
    (Any, "x", "x"),
]


@pytest.mark.parametrize(("hint", "given", "value"), READ)
def test_what_a_text_stands_for_is_read_by_its_type(hint: Any, given: Any, value: Any) -> None:
    """A text, or a value of JSON, gives the value of its type, and that gives itself as JSON."""
    found = read_value(hint, given)
    assert (found, type(found)) == (value, type(value))
    assert read_value(hint, plain_value(found)) == value
