"""Worlds for tests: one that does everything at random, and runs of worlds with their logs."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import orjson

from prism import runs
from prism.runlog import RunLog, SimulatedClock
from prism.social import SocialRun
from prism.statechart import Statechart, Transition
from prism.worlds import (
    Agent,
    Run,
    Thing,
    World,
    WorldRun,
    during,
    from_edges,
    measure,
    one_of,
    random_graph,
    ring,
    scale_free,
    small_world,
    state,
    treatment,
    uniform,
    whole,
)
from prism.worlds.examples import Council, Lake, Market, Rumour, Schelling, Vaccination

SHIPPED: dict[type[World[Any]], int] = {
    Rumour: 40,
    Schelling: 60,
    Market: 40,
    Vaccination: 30,
    Lake: 8,
    Council: 3,
}
"""The worlds that prism ships, with a number of agents that suits each."""


class Mood(StrEnum):
    """States of one kind; one of them has the text of a state of the other."""

    CALM = "calm"
    KEEN = "keen"
    TIRED = "tired"


class Gear(StrEnum):
    """States of the other kind."""

    CALM = "calm"
    BUSY = "busy"


class Note(Thing):
    """A Thing that may refer to an agent, and to another Thing."""

    text: str
    by: Any = None
    earlier: Any = None
    marks: list[int] = state(list)


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
    size: int = whole(2, 9)
    colour: Mood = one_of(*Mood)
    steps: int = state(0)
    share: float = state(0.5)
    met: list[Any] = state(list)
    seen: dict[Any, int] = state(dict)
    recent: deque[int] = state(lambda: deque(maxlen=3))
    place: tuple[int, int] = state((0, 0))
    note: Note | None = state(None)
    friend: Agent | None = state(None)


class Engine(Agent):
    """An agent of another kind, which answers messages."""

    chart = Statechart(
        Gear,
        [Transition("turns", Gear.CALM, Gear.BUSY), Transition("turns", Gear.BUSY, Gear.CALM)],
        Gear.CALM,
        name="engine",
    )
    turns: int = state(0)
    said: str = state("")


class Medley(World[Walker | Engine]):
    """A world that does all that a world can, at random, by a plan."""

    rounds = 5
    ticks = 2
    plan: int = 0
    pace: float = 0.5
    notes: list[Note] = state(list)
    counts: dict[Mood, int] = state(dict)
    told: int = state(0, kept=False)

    def populate(self, agents: int) -> list[Walker | Engine]:
        """Make three walkers for each engine."""
        return [Engine() if place % 4 == 3 else Walker() for place in range(agents)]

    def setup(self) -> None:
        """Connect everybody, and begin with a note."""
        networks = [
            lambda: small_world(self, 4, 0.3),
            lambda: ring(self, 2),
            lambda: random_graph(self, 0.3),
            lambda: scale_free(self, 2),
            lambda: from_edges(self, [(0, 1), (1, 2)]),
        ]
        self.network = networks[self.plan % len(networks)]()
        self.notes.append(Note(text="first", by=self.agents[0]))
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
            walker.met.append(other)
            walker.seen[other] = walker.seen.get(other, 0) + (made is Mood.KEEN)
        await walker.decide("stirs", {"steps": walker.steps}, prompt=f"Step {walker.steps}.")
        walker.send(walker.random.choice(self.of(Engine)), walker.steps)
        answer = await walker.receive()
        if answer is not None:
            walker.recent.append(answer.content)

    @during(Mood.KEEN)
    def write_note(self, walker: Walker) -> None:
        """Write a note that refers to an earlier one."""
        walker.steps += 1
        walker.share = walker.random.between(0, walker.size)
        walker.place = (walker.steps, -walker.steps)
        earlier = walker.random.choice(self.notes)
        walker.note = Note(text=walker.name, by=walker, earlier=earlier)
        walker.friend = earlier.by
        earlier.marks.append(walker.steps)
        self.notes.append(walker.note)
        self.counts[walker.colour] = self.counts.get(walker.colour, 0) + 1
        self.told += 1
        self.log("noted", agent=walker, marks=len(earlier.marks), colour=walker.colour)
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
                engine.said = await engine.write(told, template=f"No {engine.turns}.")
                engine.send(message.sender, len(engine.said))
        engine.fire("turns")

    @treatment(round=3)
    def hurry(self) -> None:
        """Quicken the pace."""
        self.pace = 0.9

    @measure
    def keen(self) -> float:
        """Return the share of keen walkers."""
        return self.share(Mood.KEEN)

    @measure
    def told_so_far(self) -> int:
        """Return what only the log tells."""
        return self.told

    def recall(self, event: Mapping[str, Any]) -> None:
        """Count notes again."""
        self.told += event["event"] == "world.noted"


class Stopped(BaseException):
    """Ends a run as a signal would."""


@dataclass(frozen=True)
class Done:
    """A run that has ended, and its log."""

    run: Run[Any]
    log: bytes

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the events of these names, all without a name."""
        lines = map(orjson.loads, self.log.splitlines())
        return [line for line in lines if not names or line["event"] in names]

    def told(self, *names: str) -> list[tuple[Any, ...]]:
        """Return what happened to whom, without its time."""
        keys = ("agent_id", "event", "from_state", "to_state", "chosen", "round", "tick")
        return [tuple(line.get(key) for key in keys) for line in self.events(*names)]


class Teller(Agent):
    """Somebody who hears things, and makes up their mind again and again."""

    chart = Statechart(
        Mood,
        [
            Transition("hears", Mood.CALM, Mood.KEEN),
            Transition("hears", Mood.CALM, Mood.CALM),
            Transition("rests", Mood.KEEN, Mood.CALM),
        ],
        Mood.CALM,
        name="teller",
        decision_states=[Mood.CALM],
        description="People in a village hear rumours.",
    )
    trust: float = uniform(0, 1)


class Gossip(World[Teller]):
    """A world whose agents remember notes, messages, decisions and transitions."""

    rounds = 5
    ticks = 2
    meanings: ClassVar = {Mood.CALM: "Take no notice", Mood.KEEN: "Believe it"}
    loudness: float = 0.5

    def setup(self) -> None:
        """Connect everybody."""
        self.network = ring(self, 2)

    @during(Mood.CALM)
    async def hear(self, teller: Teller) -> None:
        """Hear something, and tell it on if it is believed."""
        teller.remember(f"It rained\nin round {self.round}.")
        if await teller.decide("hears", {"tick": self.tick}) is Mood.KEEN:
            teller.send(teller.random.choice(teller.neighbours), f"news of round {self.round}")

    @during(Mood.KEEN)
    def rest(self, teller: Teller) -> None:
        """Calm down."""
        teller.inbox.clear()
        teller.fire("rests")


_numbers = count()


def run_logged(
    folder: Path, world: World[Any], agents: int | Iterable[Agent] = 12, **options: Any
) -> Done:
    """Run a world, and return its log."""
    clock = SimulatedClock()
    with RunLog(folder / f"world_{next(_numbers)}.jsonl", clock) as log:
        run = Run(world, agents, logger=log.logger, clock=clock, **options)
        run.run()

    return Done(run, log.path.read_bytes())


def run_in(folder: Path, options: WorldRun | SocialRun, stops: Iterable[int] = ()) -> bytes:
    """Carry out a run in a folder, stopped after some rounds and resumed; return what is there."""
    due = set(stops)
    kind: Any = type(options)

    def on_round(summary: Any) -> None:
        if summary.number in due:
            due.remove(summary.number)
            raise Stopped

    while True:
        try:
            if (folder / "run.json").exists():
                runs.resume(folder, kind, on_round=on_round, checkpoint_every=0)
            else:
                runs.begin(options, folder, on_round=on_round, checkpoint_every=0)
            break
        except Stopped:
            continue

    assert not due
    return (folder / "events.jsonl").read_bytes() + (folder / "run.json").read_bytes()
