"""Runs of worlds with their logs, and a world whose agents remember."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import orjson

from prism import Run, examples, resume, treatment
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, WorldResults, during, small_world, uniform
from tests.kit.kept import StoppedError

_SIZES = {"Schelling": 60, "Lake": 8, "Council": 3}
SHIPPED: dict[type[World[Any]], int] = {
    getattr(examples, name): _SIZES.get(name, 30) for name in examples.__all__
}
"""The worlds that prism ships, with a number of agents that suits each."""

WITHOUT_MODEL = {cls: size for cls, size in SHIPPED.items() if cls.__name__ != "Council"}
"""Those whose agents have something to do where no model writes."""


class Leaving(Feed):
    """A feed that a share of the agents leave when the treatment is applied."""

    leaving: float = 0.2

    @treatment
    def leave(self) -> None:
        for reader in self.assign("leave", self.leaving):
            reader.leave()


@dataclass(frozen=True)
class Done:
    """A run that has ended, and its log."""

    run: Run[Any]
    results: WorldResults
    log: bytes

    def events(self, *names: str) -> list[dict[str, Any]]:
        lines = map(orjson.loads, self.log.splitlines())
        return [line for line in lines if not names or line["event"] in names]

    def steps(self, *names: str) -> list[tuple[Any, ...]]:
        keys = ("agent_id", "event", "from_state", "to_state", "chosen", "round", "tick")
        return [tuple(line.get(key) for key in keys) for line in self.events(*names)]


Mood = StrEnum("Mood", ["CALM", "KEEN"])


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
        self.network = small_world(self, 2, 0)
        self.log("opened")

    @during(Mood.CALM)
    async def hear(self, teller: Teller) -> None:
        teller.remember(f"It rained\nin round {self.round}.")
        if await teller.decide("hears", {"tick": self.tick_number}) is Mood.KEEN:
            teller.send(teller.random.choice(teller.neighbours), f"news of round {self.round}")

    @during(Mood.KEEN)
    def rest(self, teller: Teller) -> None:
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
        results = run.run()

    return Done(run, results, log.path.read_bytes())


def run_in(folder: Path, options: Run[Any], stops: Iterable[int] = ()) -> bytes:
    """Carry out a run in a folder, stopped after some rounds and resumed; return what is there."""
    due = set(stops)

    def on_round(summary: Any) -> None:
        if summary.number in due:
            due.remove(summary.number)
            raise StoppedError

    while True:
        try:
            if (folder / "run.json").exists():
                resume(folder, on_round=on_round)
            else:
                options.keep(folder, on_round=on_round)
            break
        except StoppedError:
            continue

    assert not due
    return (folder / "events.jsonl").read_bytes() + (folder / "run.json").read_bytes()
