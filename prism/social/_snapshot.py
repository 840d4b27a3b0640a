"""What a simulation is between two rounds, as plain data, and a simulation made to go on from it.

Whatever the log tells is taken from there: posts, likes, rounds, the agents' histories. A snapshot
holds the rest.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from prism.agents import SocialAgent
from prism.errors import SimulationError
from prism.runlog._clock import Moment
from prism.social._posts import Draft, Post, Reader
from prism.social._results import Activity, RoundSummary
from prism.statechart import AgentState, Budget, StateTransition
from prism.statechart._engine.writing import make_record
from prism.statechart.transitions import Edge, shared_edge
from prism.telemetry.events import DECISION, POST_LIKED, POST_PUBLISHED, ROUND_ENDED, TRANSITION

if TYPE_CHECKING:
    from prism.social._simulation import Simulation

Event = Mapping[str, Any]


@runtime_checkable
class Remembering(Protocol):
    """A reasoner whose later answers depend on its earlier ones, such as one that reads them off a log."""

    def remember(self, decision: Event) -> None:
        """Take note of a decision that was made before the run was interrupted."""


def take_snapshot(simulation: Simulation) -> dict[str, Any]:
    """Describe a simulation as it is now, when a round has ended and the next has not begun."""
    budget = getattr(simulation.reasoner, "budget", None)
    now = simulation.clock.moment
    return {
        "moment": [now.time.isoformat(), now.round, now.tick],
        "spent": budget.to_dict() if isinstance(budget, Budget) else None,
        "agents": [_describe(reader) for reader in simulation.network.readers],
    }


def restore_snapshot(
    simulation: Simulation, snapshot: Mapping[str, Any], events: Iterable[Event]
) -> None:
    """Make a new simulation go on where another one was.

    Args:
        simulation: One of the same population, posts, seed and settings, that has not run.
        snapshot: What `take_snapshot` gave.
        events: The log of the other run until then.

    Raises:
        SimulationError: If the snapshot is of another population.
    """
    told = [described[0] for described in snapshot["agents"]]
    if told != [agent.agent_id for agent in simulation.agents]:
        raise SimulationError(
            "the run that should be gone on with has other agents: give the same population"
        )

    _read_log(simulation, events)
    posts = simulation.network.posts
    for reader, described in zip(simulation.network.readers, snapshot["agents"], strict=True):
        _restore_agent(reader.agent, described)
        _restore_feed(reader, described, posts)

    time, *place = snapshot["moment"]
    simulation.clock.moment = Moment(datetime.fromisoformat(time), *place)
    budget = getattr(simulation.reasoner, "budget", None)
    if isinstance(budget, Budget) and snapshot["spent"] is not None:
        budget.restore(**snapshot["spent"])


def _describe(reader: Reader) -> list[Any]:
    agent = reader.agent
    return [
        agent.agent_id,
        agent.state.value,
        agent.ticks_in_state,
        agent.pending_action,
        reader.seen_until,
        [post.number for post in reader.unread],
        [post.number for post in reader.inbox],
    ]


def _restore_agent(agent: SocialAgent, described: list[Any]) -> None:
    _, state, ticks, pending, *_ = described
    agent.state = AgentState(state)
    agent.ticks_in_state = ticks
    agent.pending_action = pending


def _restore_feed(reader: Reader, described: list[Any], posts: list[Post]) -> None:
    *_, reader.seen_until, unread, inbox = described
    reader.unread = deque(posts[number] for number in unread)
    reader.inbox.clear()
    reader.inbox.extend(posts[number] for number in inbox)


def _record(event: Event) -> StateTransition:
    edge = _edge(event["from_state"], event["to_state"], event["trigger"])
    return make_record(edge, _seconds(event["timestamp"]), event["context"])


@lru_cache(maxsize=1024)
def _edge(source: str, target: str, trigger: str) -> Edge:
    return shared_edge(AgentState(source), AgentState(target), trigger)


@lru_cache(maxsize=1024)
def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _read_log(simulation: Simulation, events: Iterable[Event]) -> None:
    """Put back what the log tells."""
    histories = {agent.agent_id: agent.state_history for agent in simulation.agents}
    by_id: dict[str, Post] = {}
    network, reasoner = simulation.network, simulation.reasoner

    def publish(event: Event) -> None:
        draft = Draft(event["kind"], event["text"], tuple(event["topics"]))
        parent = None if event["parent_id"] is None else by_id[event["parent_id"]]
        by_id[event["post_id"]] = network.publish_again(
            event["post_id"], event["agent_id"], draft, parent
        )

    readers: dict[str, Callable[[Event], Any]] = {
        TRANSITION: lambda event: histories[event["agent_id"]].append(_record(event)),
        POST_PUBLISHED: publish,
        POST_LIKED: lambda event: network.like(by_id[event["post_id"]]),
        ROUND_ENDED: lambda event: simulation.finished.append(_summary(event)),
    }
    if isinstance(reasoner, Remembering):
        readers[DECISION] = reasoner.remember

    for event in events:
        reader = readers.get(event["event"])
        if reader is not None:
            reader(event)


def _summary(event: Event) -> RoundSummary:
    counts = {name: event[name] for name in Activity.COUNTED}
    told = Activity(
        **counts, timeouts=Counter(event["timeouts"]), fallbacks=Counter(event["fallbacks"])
    )
    return RoundSummary(event["round"], event["states"], told)
