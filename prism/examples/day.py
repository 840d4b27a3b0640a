"""A day in regions: people work and sleep, and look at their phones meanwhile."""

from enum import StrEnum

from prism.statechart import History, State, Statechart, Transition
from prism.worlds import Agent, World, during, measure, small_world, state, uniform

At = StrEnum("At", "AWAKE PLACE WORK HOME PHONE POCKET FEED ASLEEP")
REGIONS = [State(At.PLACE, [At.WORK, At.HOME]), State(At.PHONE, [At.POCKET, At.FEED])]


class Person(Agent):
    """Somebody with a day of 24 hours, and a phone in the pocket or in the hand."""

    chart = Statechart(
        [State(At.AWAKE, REGIONS, parallel=True), At.ASLEEP],
        [
            Transition("returns", At.WORK, At.HOME, after=8),
            Transition("sleeps", At.HOME, At.ASLEEP, after=8),
            Transition("wakes", At.ASLEEP, History(At.PHONE), after=8),
            Transition("buzzes", At.POCKET, At.FEED),
            Transition("looks", At.POCKET, At.FEED, rate=lambda who, _: who.curiosity),
            Transition("tires", At.FEED, At.POCKET, rate=0.7),
            Transition("hides", At.FEED, At.POCKET),
        ],
        initial=At.AWAKE,
        name="day",
    )
    curiosity: float = uniform(0.0, 0.2)
    lost: int = state(0)


class Day(World[Person]):
    """People whose messages make others look at their phones, at work as well."""

    rounds = 10
    ticks = 24
    messages: float = 0.4

    def setup(self) -> None:
        """Connect people."""
        self.network = small_world(self, 4, 0.1)

    @during(At.FEED)
    def write(self, person: Person) -> None:
        """Write to a friend now and then."""
        if person.random.chance(self.messages):
            person.random.choice(person.neighbours).fire("buzzes", person)

    @during(At.WORK)
    def work(self, person: Person) -> None:
        """Lose an hour to the phone, and hide it if somebody comes."""
        person.lost += person.chart.is_in(person, At.FEED)
        if person.random.chance(0.3):
            person.fire("hides")

    @measure
    def hours_lost(self) -> float:
        """Return the hours of work that a day costs each on average."""
        return self.agents.mean("lost") / self.round
