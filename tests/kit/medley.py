"""A world that does everything a world can, at random."""

from enum import StrEnum
from typing import Any

from prism.statechart import Statechart, Transition
from prism.worlds import (
    Agent,
    World,
    during,
    from_edges,
    measure,
    random_graph,
    ring,
    scale_free,
    small_world,
    state,
    treatment,
    uniform,
)


class Mood(StrEnum):
    """States of one kind; one of them has the text of a state of the other."""

    CALM = "calm"
    KEEN = "keen"
    TIRED = "tired"


class Gear(StrEnum):
    """States of the other kind."""

    CALM = "calm"
    BUSY = "busy"


class Walker(Agent):
    """An agent with a field of every kind."""

    chart = Statechart(
        Mood,
        [
            Transition("stirs", Mood.CALM, Mood.KEEN),
            Transition("stirs", Mood.CALM, Mood.CALM),
            Transition("stirs", Mood.CALM, Mood.TIRED),
            Transition("stirs", Mood.KEEN, Mood.TIRED),
            Transition("timeout", Mood.TIRED, Mood.CALM),
        ],
        Mood.CALM,
        name="walker",
        decision_states=[Mood.CALM],
        timeouts={Mood.TIRED: 2},
    )
    ease: float = uniform(0, 1)
    steps: int = state(0)
    met: list[Any] = state(list)


class Engine(Agent):
    """An agent of another kind, which answers messages."""

    chart = Statechart(
        Gear,
        [Transition("turns", Gear.CALM, Gear.BUSY), Transition("turns", Gear.BUSY, Gear.CALM)],
        Gear.CALM,
        name="engine",
    )
    turns: int = state(0)

    @measure
    def turned(self) -> int:
        """Return how often it has turned."""
        return self.turns


class Medley(World[Walker | Engine]):
    """A world that does all that a world can, at random, by a plan."""

    rounds = 5
    ticks = 2
    plan: int = 0
    pace: float = 0.5
    noted: list[Any] = state(list)

    def populate(self, agents: int) -> list[Walker | Engine]:
        """Make three walkers for each engine."""
        return [Engine() if place % 4 == 3 else Walker() for place in range(agents)]

    def setup(self) -> None:
        """Connect everybody, and let the first one note something."""
        networks = [
            lambda: small_world(self, 4, 0.3),
            lambda: ring(self, 2),
            lambda: random_graph(self, 0.3),
            lambda: scale_free(self, 2),
            lambda: from_edges(self, [(0, 1), (1, 2)]),
        ]
        self.network = networks[self.plan % len(networks)]()
        self.noted.append(self.agents[0])
        self.agents[0].begin_in(Mood.KEEN)
        self.log("opened", plan=self.plan)

    def round_begins(self) -> None:
        """Change the network now and then."""
        if self.plan % 2 and self.random.chance(0.7):
            one, other = self.random.sample(self.agents, 2)
            self.network.connect(one, other)
        elif edges := list(self.network.edges()):
            self.network.disconnect(*self.random.choice(edges))

    @during(Mood.CALM)
    async def wonder(self, walker: Walker) -> None:
        """Decide alone, ask a neighbour to decide, or ask an engine."""
        others = [each for each in walker.neighbours if isinstance(each, Walker)]
        if others and walker.random.chance(self.pace):
            other = walker.random.choice(others)
            made = await other.decide("stirs", walker, weights={Mood.KEEN: 1, Mood.CALM: 2})
            walker.met.append((other.agent_id, made))
        await walker.decide("stirs", {"steps": walker.steps}, prompt=f"Step {walker.steps}.")
        walker.send(walker.random.choice(self.agents.where(kind=Engine)), walker.steps)
        answer = await walker.receive()
        walker.met.append(answer and answer.content)

    @during(Mood.KEEN)
    def note(self, walker: Walker) -> None:
        """Change somebody who has noted something before."""
        walker.steps += 1
        earlier = walker.random.choice(self.noted)
        earlier.met.append(walker.steps)
        self.noted.append(walker)
        self.log("noted", agent=walker, after=earlier, met=len(earlier.met), ease=walker.ease)
        walker.fire("stirs")

    @during(Gear.CALM, Gear.BUSY)
    async def answer(self, engine: Engine) -> None:
        """Answer what walkers ask, but not always."""
        while message := await engine.receive():
            engine.turns += 1
            if engine.random.chance(0.8):
                engine.send(message.sender, engine.turns)
            elif self.plan % 3:
                told = f"Answer {message.sender.name}, {engine.turns}."
                said = await engine.write(told, template=f"No {engine.turns}.")
                engine.send(message.sender, len(said))
        engine.fire("turns")

    @treatment(round=3)
    def hurry(self) -> None:
        """Quicken the pace."""
        self.pace = 0.9

    @measure
    def keen(self) -> float:
        """Return the share of keen walkers."""
        return self.share(Mood.KEEN)
