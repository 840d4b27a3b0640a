"""What cannot be compiled is refused by file, line and remedy; one test for every sentence."""

from pathlib import Path
from typing import Any

import pytest

from prism.columns import problems_of
from prism.errors import (
    DefinitionError,
    InputError,
    PrismError,
    SimulationError,
    UnknownStateError,
    UnknownTriggerError,
)
from prism.examples.rumour import Rumour
from prism.llm import Model
from prism.worlds import Run, measure
from tests.columns.written import town, world
from tests.kit.interpreted import machine_of

STEPS = {
    "x = [1, 2]": "is not supported in columns",
    "x = {1, 2}": "go through neighbours",
    "x = {1: 2.0}.keys()": "is not a state of the chart",
    "x = person.neighbours[0]": "is not supported in columns",
    "person.send(person, 1)": "messages have no column",
    "await person.receive()": "messages have no column",
    "await person.write('Say it', template='so')": "texts have no column",
    "person.remember('it')": "notes have no column",
    "x = person.state_history": "histories are not kept",
    "x = len(person.agent_id)": "texts have no column",
    "x = person.note": "columns do not support: use a number",
    "x = self.random.random()": "the world's random numbers depend on who draws first",
    "self.log('seen')": "a step logs nothing",
    "self.stop()": "let until say when the run ends",
    "for other in self.agents:\n    pass": "use neighbours",
    "self.network.connect(person, person)": "a network does not change in a step",
    "x = self.time": "use round and tick",
    "self.total = 1.0": "is set in a step, where the order of agents would decide",
    "x = self.books": "is not a number, bool, enum or Literal",
    "person.money = 1": "write 0.0 for 0",
    "person.age = 1.5": "is a whole number, and gets a float: use one type",
    "person.side = 'middle'": "must be one of left, right here",
    "x = person.mood == 'CROSS'": "must be one of glad, sad here",
    "person.fire('away')": "the trigger must be named, one of up, down",
    "person.fire('up', 3)": "3 must be an agent or None here, not a whole number",
    "person.decide('up')": "decide is awaited",
    "await person.decide('up', prompt='Up?')": "is for a model",
    "w = 3\nawait person.decide('up', weights=w)": "weights are written out",
    "w = {Mind.HIGH: 1.0} if person.age > 3 else {Mind.LOW: 1.0}": "weights are written out",
    "x = self.helper({Mind.HIGH: 1.0})": "weights are written out",
    "w = {Mind.HIGH: 1.0}\nx = self.helper(w)": "weights are written out",
    "for one, other in person.neighbours:\n    person.money = 1": "write 0.0 for 0",
    "await person.decide('up', weights={1: 2.0})": "is not a state of the chart",
    "await person.decide('up', weights={Mood.SAD: 2.0})": "its states are Mind.LOW, Mind.HIGH",
    "await person.decide('down', weights={Mind.HIGH: 1.0})": "'down' ever leads: leave it out",
    "w = {Mind.HIGH: 1.0}\nawait person.decide('down', weights=w)": "its targets are low",
    "x = self.share('up')": "takes a state, but gets a text",
    "x = self.share(Mood.SAD)": "takes a state, but gets",
    "for other in person.neighbours:\n    await other.decide('up')": "await in a loop",
    "x = 1.0 + (await person.decide('up') is None)": "give it a name first",
    "x = 1\nx = 1.5": "use two names",
    "if person.age > 3:\n    x = 1\ny = x": "may have no value yet",
    "person = person": "is an argument: give the new value another name",
    "x = None": "has no name in columns",
    "x = y = 1": "two names for one value",
    "x, y = 1, 2": "is not supported in columns",
    "x = person.is_glad + 1": "or a number and a number, but gets True",
    "x = person.age ** person.age": "a whole number to a whole power",
    "x = person.age & 3": "the operators are",
    "x = ~person.age": "the operators are",
    "x = person.age if person.is_glad else 0.5": "give both the same type",
    "x = person.age is person.counted": "numbers are compared with == and !=",
    "x = person.money < person.mood": "compare values of the same type",
    "x = person in NUMBERS": "is not supported in columns",
    "x = person.neighbours.sample(2)": "neighbours support count",
    "x = person.random.normal(0, 1)": "random numbers support random, chance, index",
    "x = person.random.choice(3)": "takes neighbours, but gets a whole number",
    "x = person.random.between(1.0)": "takes a number and a number, but gets a float",
    "x = print(3)": "is not supported in columns",
    "x = max(1, 2.0)": "or a float and a float, but gets a whole number and a float",
    "x = sum(o.money for o in person.neighbours)": "begin a sum of floats with 0.0",
    "x = any(o for o in NUMBERS)": "is not supported in columns",
    "x = sum(o.mood for o in person.neighbours)": "or a float, but gets Mood",
    "x = self.helper(person=person)": "keyword arguments and *: use positional ones",
    "x = self.helper(person, 1)": "takes other arguments",
    "x = self.endless(person)": "calls itself: use a loop",
    "x = self.unsure(person)": "it returns nothing on some path",
    "x = self.waiting(person)": "a function that a step calls cannot wait",
    "try:\n    pass\nfinally:\n    pass": "steps in columns cannot have such a statement",
    "while person.is_glad:\n    break\nelse:\n    pass": "an else of a loop",
    "for n in range(1, 10, 2):\n    pass": "range takes one or two numbers here",
    "for n in NUMBERS:\n    pass": "is not supported in columns",
    "return 3": "a step returns nothing",
    "for n in range():\n    pass": "range takes one or two numbers here",
    "for n in person:\n    pass": "a loop goes through neighbours, or a range of numbers",
    "x = any(o.is_glad for o in person.age)": "goes through the neighbours of one agent",
    "x = all(a.is_glad for a, b in person.neighbours)": "a loop has one name",
    "x = sum([o.money for o in person.neighbours])": "give it a loop: sum(",
    "x = self": "the world has no name in columns",
    "x = self.itself(person)": "a return of the world",
    "x = self.empty(person)": "must return a value on every path",
    "x = self.unknown()": "is unknown here: run this world without columns",
    "x = person.mood.name": "Mood has no such thing",
    "x = person.mood < Mood.SAD": "compare values of the same type",
    "x = person.age in person.counted": "write the values to look for in brackets",
    "w = {**{Mind.LOW: 1.0}}": "weights are written out",
    "x[0] = 1": "a step sets names and fields of agents, one at a time",
    "x = float(person.mood)": "takes a number, but gets Mood",
    "x = not person.side": "must be a condition here, not a text: compare it with something",
    "person.neighbours = 3": "cannot be set in a step",
}
MORE = """
def endless(self, person: Person) -> float:
    return self.endless(person)

def unsure(self, person: Person) -> float:
    if person.age > 3:
        return 1.0

def empty(self, person: Person) -> None:
    return

def itself(self, person: Person) -> object:
    return self

async def waiting(self, person: Person) -> float:
    x = await person.decide("up")
    return 1.0
"""

CHART = "chart = Statechart(Mind, [Transition('up', Mind.LOW, Mind.HIGH{more})], Mind.LOW{also})"
PERSON = f"class Person(Agent):\n    {CHART}\n"
TOWN = "\nclass Town(World[Person]):\n    pass\n"
CLASSES = {
    PERSON.format(more="", also="") + "\nclass Other(Person):\n    pass\n"
    "\nclass Town(World[Person | Other]):\n    pass\n": "columns support only one kind of agents",
    PERSON.format(more="", also="") + TOWN + "    overlap = True\n": "overlap = True",
    PERSON.format(more="", also="") + TOWN + "    activation = 'rate'\n": "activation = 'rate'",
    PERSON.format(more=", action=lambda a, c: None", also="") + TOWN: "has an action",
    PERSON.format(more="", also="")
    + "    archetype = 3\n"
    + TOWN: "is not supported; columns draw by weights",
    "class Person(Agent):\n    chart = Statechart([State(Mind.LOW, states=[Mind.HIGH])], [], "
    "Mind.HIGH)\n" + TOWN: "has states inside",
    "class Person(Agent):\n    pass\n" + TOWN: "has no chart of its own",
    PERSON.format(
        more=", guard=lambda a, c: True) if (lambda: 1)() else Transition('up', "
        "Mind.LOW, Mind.HIGH",
        also="",
    )
    + TOWN: "there are several on one line",
}


def test_weights_may_have_two_names(tmp_path: Path) -> None:
    """By the second one they are of the same states."""
    step = "w = {Mind.LOW: 1.0}\nv = w\nawait person.decide('down', weights=v)"
    assert problems_of(town(step, tmp_path)) == []


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.sampled(10)
def test_a_step_is_refused_by_its_line(step: str, tmp_path: Path) -> None:
    """What a step cannot say is told with file, line, method, and what to do."""
    found = problems_of(town(step, tmp_path, more=MORE))
    assert any(STEPS[step] in each for each in found), found
    assert all("written.py:" in each and "Town." in each for each in found), found


SEVERAL = """
if self.random.random() < self.time:
    self.total = 1.0
for other in self.agents:
    self.log("seen")
    x = other.money
x = self.lost(person)
y = x + 1
z = person.note and self.books
try:
    self.stop()
except ValueError:
    pass
print(len(person.note), person.state_history)
"""
LOST = """
def lost(self, person: Person) -> float:
    return person.inbox
"""


def test_all_reasons_are_told_and_no_consequences(tmp_path: Path) -> None:
    """Each part of a statement and of a block has its line; what follows from another has none."""
    found = problems_of(town(SEVERAL, tmp_path, more=LOST))
    of_step = [each for each in found if ": Town.step: " in each]
    first = int(of_step[0].split(":")[1])
    told = [(int(each.split(":")[1]) - first, each.split(": ", 2)[2]) for each in of_step]
    wanted = [
        (0, "self.random: the world's random numbers depend on who draws first"),
        (0, "self.time: use round and tick"),
        (1, "self.total is set in a step"),
        (2, "self.agents: a step that goes through everybody"),
        (3, "self.log: a step logs nothing"),
        (7, "Person.note is str"),
        (7, "self.books is not a number"),
        (8, "try: steps in columns cannot have such a statement: ask with if"),
        (9, "self.stop: let until say when the run ends"),
        (12, "print(...) is not supported in columns: print in a hook"),
    ]
    assert [line for line, _ in told] == [line for line, _ in wanted], found
    assert all(text in why for (_, why), (_, text) in zip(told, wanted, strict=True)), found
    assert len(found) == len(told) + 1
    assert sum("person.inbox: messages have no column" in each for each in found) == 1


def test_a_class_and_its_steps_are_refused_together(tmp_path: Path) -> None:
    """What is wrong with a class stands beside what its steps cannot have."""
    cls = town("self.stop()", tmp_path)
    cls.overlap = True
    assert [each.split(": ", 1)[1].split(" ")[0] for each in problems_of(cls)] == [
        "Town",
        "Town.step:",
    ]


@pytest.mark.parametrize("text", CLASSES)
def test_a_class_is_refused(text: str, tmp_path: Path) -> None:
    """What a class has that no column holds is told before anything is made."""
    found = problems_of(world(text, tmp_path))
    assert any(CLASSES[text] in each for each in found), found


def test_run_refuses_before_anything_is_made(tmp_path: Path) -> None:
    """There is no silent way back to objects: the run is refused, with all that is in the way."""
    kind = town("x = self.time\nself.stop()", tmp_path)
    with pytest.raises(DefinitionError, match=r"(?s)self\.time.*self\.stop"):
        Run(kind, 1_000_000, columns=True)


def test_a_model_is_refused() -> None:
    """Who asks for a model gets no columns that draw by weights."""
    run = Run(Rumour, 10, columns=True, model=Model("any"))
    with pytest.raises(InputError, match="only weights can decide"):
        run.run()


TWO_WAYS = "), Transition('up', Mind.LOW, Mind.LOW"
UNDECIDED = (
    PERSON.format(more=TWO_WAYS, also="")
    + "class Town(World[Person]):\n    rounds = 1\n    @during(Mind.LOW)\n"
    + "    async def climb(self, person):\n"
    + "        await person.decide('up', weights={Mind.LOW: 1.0, Mind.HIGH: 1.0})\n"
)


@pytest.mark.parametrize("columns", [False, True])
def test_weights_where_nobody_decides_are_refused_by_both_engines(
    columns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of the enabled transitions would be made, whatever they are."""
    monkeypatch.setattr("prism.columns._stage.machine_of", machine_of)
    with pytest.raises(PrismError, match="chart's decision_states"):
        Run(world(UNDECIDED, tmp_path), 5, columns=columns).run()


class Misspelt(Rumour):
    """A rumour of which a measure asks for a state that nobody can be in."""

    asks: str = "share"

    @measure
    def lost(self) -> float:
        """Ask in one of three ways."""
        asked: Any = "curius"
        if self.asks == "where":
            return len(self.agents.where(state=asked))
        return self.share(asked) if self.asks == "share" else self.count(asked)


@pytest.mark.slow
@pytest.mark.parametrize("asks", ["share", "count", "where"])
def test_a_measure_of_an_unknown_state_is_refused_in_columns(asks: str) -> None:
    """As without columns, it would be nobody's state for ever."""
    with pytest.raises(UnknownStateError, match=r"state 'curius'.*there are Mind.IGNORANT, Mind."):
        Run(Misspelt(asks=asks), 20, rounds=1, columns=True).run()


class Mistaken(Rumour):
    """A rumour of which a hook fires an event that no chart has."""

    def tick_begins(self) -> None:
        """Fire it."""
        self.agents[0].fire("heers")


@pytest.mark.parametrize("columns", [False, True])
def test_a_hook_that_fires_an_unknown_event_is_refused_by_both_engines(
    columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the world would go on without what it is about."""
    monkeypatch.setattr("prism.columns._stage.machine_of", machine_of)
    with pytest.raises(UnknownTriggerError, match="'heers'; did you mean 'hears'"):
        Run(Mistaken, 9, rounds=1, columns=columns).run()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("inbox", "messages have no column"),
        ("remember", "notes have no column"),
        ("state_history", "histories are not kept in columns"),
        ("decision_random", "the numbers of decisions are drawn by compiled code"),
    ],
)
def test_a_hook_is_told_what_rows_do_not_have(
    name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an agent cannot do in columns says so, with what to do instead."""
    monkeypatch.setattr("prism.columns._stage.machine_of", machine_of)
    person = Run(Rumour, 9, columns=True).agents[0]
    with pytest.raises(SimulationError, match=f"'person_1': {why}: run this world without columns"):
        getattr(person, name)
