"""Decisions by a model: how busy prism keeps the servers' slots, and its own cost.

The servers are `FakeOllama` in processes of their own: 100 ms an answer, 16 slots a host.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import IO, Any

from prism.agents import SocialAgent
from prism.llm import Model
from prism.reasoner import Question, Reasoner
from prism.social import Draft, Post
from prism.statechart import AgentState
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table, ratio

MODEL = "llama3.2"
LATENCY, SLOTS = 0.1, 16
OPTIONS = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.SCROLLING)


def run(effort: Effort) -> list[Table]:
    """Measure decisions on one host and on three, and prism's own cost."""
    number, turns = (2_000, 3) if effort == FULL else (96, 1)
    questions = [_question(each) for each in range(number)]
    return [_throughput(questions, turns), _own_cost(questions, turns)]


def _throughput(questions: Sequence[Question], turns: int) -> Table:
    with ExitStack() as stack:
        hosts = [stack.enter_context(model_server())[0] for _ in range(3)]
        taken = [
            [_timed(partial(_prism, some, questions)) for some in (hosts[:1], hosts)]
            for _ in range(turns)
        ]
    names = ("prism, 1 host", "prism, 3 hosts")
    one, three = map(Measurement, names, zip(*taken, strict=True))
    seconds = len(questions) / SLOTS * LATENCY
    allowed = Measurement("what 16 slots allow", (seconds,) * turns)
    return Table(
        f"{len(questions):,} decisions, 100 ms an answer, 16 slots a host",
        "s",
        allowed.name,
        [allowed, one, three],
        [
            *ratio("share of what the slots allow, one host", allowed, one, at_least=0.95),
            *ratio("one host against three", one, three, at_least=2.8),
        ],
    )


def _own_cost(questions: Sequence[Question], turns: int) -> Table:
    class Instant:
        """A client that needs no network."""

        async def run(self, prompt: str) -> str:
            return '{"next_state": "scrolling"}'

    async def decide() -> None:
        await Reasoner(Instant(), concurrency=SLOTS).decide_many(questions)

    samples = tuple(_timed(decide) / len(questions) * 1e6 for _ in range(turns + 2))
    own = Measurement("prism, no network", samples)
    claim = Claim("prism's own cost of a decision", own.best, own.median, "us", at_most=100.0)
    return Table("What prism itself adds to a decision", "us", own.name, [own], [claim])


def _question(number: int) -> Question:
    agent = SocialAgent(f"agent_{number}", interests=["music", "travel"], personality="curious")
    draft = Draft(f"Something that happened to me today, number {number}.", ("travel",))
    post = Post(f"post_{number}", "agent_0", "post", draft)
    return Question(agent, AgentState.EVALUATING, "decides", OPTIONS, post)


def pool_of(hosts: Sequence[str]) -> Any:
    # a few more wait at the server, so none is idle
    return Model(MODEL, hosts, concurrency=SLOTS + SLOTS // 4).as_client()


async def _prism(hosts: Sequence[str], questions: Sequence[Question]) -> None:
    async with pool_of(hosts) as pool:
        decisions = await Reasoner(pool, mode="chat").decide_many(questions)
    assert all(decision.source == "model" for decision in decisions), decisions[0]


def _timed(way: Callable[[], Coroutine[Any, Any, None]]) -> float:
    began = perf_counter()
    asyncio.run(way())
    return perf_counter() - began


@contextmanager
def model_server(tail: float = 1, slots: int = SLOTS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run a server in a process of its own; its counts are there once it has stopped."""
    module = "tests.benchmarks.model_server"
    command = [sys.executable, "-m", module, *map(str, (LATENCY, tail, slots))]
    counts: dict[str, Any] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        said: IO[str] = process.stdout  # type: ignore[assignment]
        yield said.readline().strip(), counts
        assert process.stdin is not None
        process.stdin.close()
        counts.update(json.loads(said.readline()))
