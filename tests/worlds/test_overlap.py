"""Worlds whose agents go on while others wait for an answer."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import SimulationError
from prism.runlog import ReplayReasoner
from prism.statechart import Decision, PolicyReasoner, Question, Statechart, Transition
from prism.testing import LateReasoner
from prism.worlds import Agent, World, during, measure, ring, state, uniform
from tests.kit.worlds import run_logged


class Mood(StrEnum):
    """What somebody does."""

    CALM = "calm"
    KEEN = "keen"
    TIRED = "tired"


class Person(Agent):
    """Somebody who thinks once or several times in a tick."""

    chart = Statechart(
        Mood,
        [
            Transition("thinks", Mood.CALM, Mood.KEEN),
            Transition("thinks", Mood.CALM, Mood.CALM),
            Transition("thinks", Mood.KEEN, Mood.TIRED),
            Transition("thinks", Mood.KEEN, Mood.CALM),
            Transition("timeout", Mood.TIRED, Mood.CALM),
        ],
        Mood.CALM,
        name="thinker",
        decision_states=[Mood.CALM, Mood.KEEN],
        timeouts={Mood.TIRED: 2},
    )
    ease: float = uniform(0, 1)
    thoughts: int = state(0)
    made: list[Mood] = state(list)


class Thinkers(World[Person]):
    """People who think alone, the more so the more ease they have."""

    rounds = 4
    ticks = 5
    overlap = True
    begun: int = state(0)

    @during(Mood.CALM, Mood.KEEN)
    async def think(self, person: Person) -> None:
        """Think until the mood changes, or ease is used up."""
        self.begun += 1
        self.log("began", agent=person, number=self.begun)
        while person.random.chance(person.ease):
            person.thoughts += 1
            now = await person.decide("thinks", {"number": person.thoughts})
            person.made.append(now)
            self.log("thought", agent=person, mood=now)
            if now is Mood.TIRED:
                return

    @measure
    def thoughts(self) -> int:
        """Return how often people have thought."""
        return sum(person.thoughts for person in self.agents)


class Alone(Thinkers):
    """The same people, who change nothing but themselves."""

    overlap = "alone"
    ticks = 12

    @during(Mood.CALM, Mood.KEEN)
    async def think(self, person: Person) -> None:
        """Think, and log how long the mood has lasted."""
        self.log("began", agent=person, ticks=person.ticks_in_state, moment=self.time)
        while person.random.chance(person.ease):
            person.thoughts += 1
            person.made.append(await person.decide("thinks", {"number": person.thoughts}))
            self.log("thought", agent=person, mood=person.state, ticks=person.ticks_in_state)
            if person.state is Mood.TIRED:
                if self.round == 3:
                    self.stop(person.agent_id)
                return


@pytest.mark.parametrize("world", [Thinkers, Alone])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(6)
def test_when_answers_come_changes_nothing(world: Any, seed: int, tmp_path: Path) -> None:
    """Answers that come late and out of order change no byte, though agents ask several times."""
    late = LateReasoner(PolicyReasoner(1), most_turns=400 if world is Alone else 59, seed=seed)
    one = run_logged(tmp_path, world(), 20, rounds=3, seed=seed, reasoner=late)
    other = run_logged(tmp_path, world(), 20, rounds=3, seed=seed, reasoner=PolicyReasoner(1))
    assert late.overtaken > 0
    assert one.log.splitlines() == other.log.splitlines()
    assert one.run.finished == other.run.finished
    moments = [(line["round"], line["tick"]) for line in one.events()]
    assert moments == sorted(moments)


class Lost(PolicyReasoner):
    """Never finds an answer, and has another reason for each agent."""

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Take the first option."""
        return [
            Decision(each.options[0], "fallback", reason=f"Lost: {each.agent.agent_id} is lost")
            for each in questions
        ]


def test_when_answers_come_changes_no_example_of_a_fallback(tmp_path: Path) -> None:
    """A round tells one reason of each kind, whichever answer came first."""
    late = LateReasoner(Lost(1), most_turns=59)
    one = run_logged(tmp_path, Thinkers(), 20, rounds=3, reasoner=late)
    other = run_logged(tmp_path, Thinkers(), 20, rounds=3, reasoner=Lost(1))
    assert late.overtaken > 0
    assert one.run.finished[0].fallback_examples == {"Lost": "Lost: person_1 is lost"}
    assert one.log.splitlines() == other.log.splitlines()


async def _turns_of_the_loop(world: World[Any]) -> int:
    """Return how often the event loop turned until a run had all its late answers."""
    late = LateReasoner(PolicyReasoner(1), most_turns=300)
    run = asyncio.ensure_future(Run(world, 20, rounds=2, reasoner=late, seed=2).arun())
    turned = 0
    while not run.done():
        turned += 1
        await asyncio.sleep(0)

    await run
    return turned


@pytest.mark.slow
def test_agents_go_on_while_others_wait() -> None:
    """Late answers take less time in all than in a world that waits for its tick."""

    class Waiting(Thinkers):
        overlap = False

    overlapping, waiting = (asyncio.run(_turns_of_the_loop(each())) for each in (Thinkers, Waiting))
    assert overlapping < 0.8 * waiting


@pytest.mark.slow
def test_agents_who_are_alone_hold_up_nobody() -> None:
    """Agents who wait hold up only themselves, so late answers take still less time."""

    class Beside(Alone):
        overlap = True

    alone, beside = (asyncio.run(_turns_of_the_loop(each())) for each in (Alone, Beside))
    assert alone < 0.8 * beside


def test_the_order_of_the_list_changes_nothing_for_agents_who_are_alone(tmp_path: Path) -> None:
    """The same people in another order write the same lines once they have joined."""
    lines = []
    for turned in (False, True):
        people = [Person(agent_id=f"p{number}") for number in range(12)]
        late = LateReasoner(PolicyReasoner(1), most_turns=400, seed=turned)
        run = run_logged(tmp_path, Alone(), people[:: -1 if turned else 1], reasoner=late)
        told = run.log.splitlines()
        lines.append(told[next(at for at, line in enumerate(told) if b"round.started" in line) :])
    assert lines[0] == lines[1]


@pytest.mark.parametrize("world", [Thinkers, Alone])
@pytest.mark.slow
def test_a_replay_that_is_resumed_writes_the_same_bytes(world: Any, tmp_path: Path) -> None:
    """A run whose answers came late is replayed, and goes on from a snapshot, to the same lines."""
    kept: list[Any] = []
    slow = LateReasoner(PolicyReasoner(1), most_turns=200)
    late = run_logged(tmp_path, world(), 9, rounds=3, reasoner=slow)
    path = tmp_path / "log"
    path.write_bytes(late.log)
    replay = ReplayReasoner(path, verbatim=True)
    replayed = run_logged(tmp_path, world(), 9, rounds=3, reasoner=replay)
    assert replayed.log == late.log

    run = Run(world(), 9, rounds=3)
    whole = run.run(lambda _: kept.append(run.loop.snapshot()))
    again = Run(world(), 9, rounds=3)
    again.loop.restore(
        kept[1], [{"event": "round.ended", **each.to_dict()} for each in whole.rounds[:2]]
    )
    assert again.run() == whole


class Wrong(Thinkers):
    """A world in which steps do what they must not."""

    mode: str = "state"

    @during(Mood.CALM)
    async def think(self, person: Person) -> None:
        """Look at another person, or change the world too late."""
        other = self.agents[0] if person is not self.agents[0] else self.agents[1]
        if self.mode == "after":
            await person.decide("thinks", weights={Mood.CALM: 1})
            self.begun += 1
        elif self.mode == "draws":
            await person.decide("thinks", weights={Mood.CALM: 1})
            self.random.random()
        else:
            doing = {
                "state": lambda: other.state,
                "field": lambda: other.thoughts,
                "write": lambda: setattr(other, "thoughts", 1),
                "count": lambda: self.count(Mood.CALM),
                "fire": lambda: other.fire("thinks"),
                "send": lambda: person.send(other, "hello"),
                "wait": lambda: None,
            }
            doing[self.mode]()
            await other.decide("thinks")


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        ("state", "looks at state of 'person_2': in an overlap world"),
        ("field", "looks at thoughts of 'person_2'"),
        ("write", "looks at thoughts of 'person_2'"),
        ("count", "looks at state of 'person_2'"),
        ("fire", "looks at fire of 'person_2'"),
        ("send", "'person_1' sends 'person_2' a message: in an overlap world"),
        ("wait", "looks at decide of 'person_2'"),
        (
            "after",
            "begun cannot be set: after its first await, a step may change only its own agent",
        ),
        ("draws", "cannot draw random numbers: after its first await"),
    ],
)
@pytest.mark.parametrize("reasoner", [PolicyReasoner, LateReasoner])
def test_a_step_that_looks_at_others_is_refused(mode: str, problem: str, reasoner: Any) -> None:
    """What would depend on when answers come is refused, whoever decides; nothing is left."""
    with pytest.raises(SimulationError, match=problem):
        Run(Wrong(mode=mode), 3, reasoner=reasoner()).run()


@pytest.mark.parametrize("mode", ["sets", "draws", "connects"])
def test_agents_who_are_alone_do_not_change_the_world(mode: str) -> None:
    """A step that changes the world is refused before its first await, too."""

    class Changing(Thinkers):
        overlap = "alone"

        def setup(self) -> None:
            self.network = ring(self, 2)

        @during(Mood.CALM)
        async def think(self, person: Person) -> None:
            if mode == "draws":
                self.random.random()
            elif mode == "connects":
                self.network.connect(person, person)
            self.begun += 1

    with pytest.raises(SimulationError, match='in a world with overlap = "alone", a step may'):
        Run(Changing(), 6).run()


class Listening(Thinkers):
    """People who wait for others."""

    @during(Mood.CALM, Mood.KEEN)
    async def think(self, person: Person) -> None:
        """Wait for a message."""
        await person.receive()


def test_a_step_that_waits_for_others_is_refused_with_its_place() -> None:
    """The message begins with the line that waits for a message, which may never come."""
    with pytest.raises(SimulationError, match=r"test_overlap.py:\d+, in .*still waits for another"):
        Run(Listening(), 3).run()
