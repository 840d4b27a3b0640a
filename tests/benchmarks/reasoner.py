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
from time import perf_counter, process_time
from typing import IO, Any

import ollama

from prism.agents import SocialAgent
from prism.llm import Model
from prism.social import Draft, Post
from prism.statechart import AgentState, Question, Reasoner
from prism.testing import FakeOllama
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table, ratio

MODEL = "llama3.2"
LATENCY, SLOTS, FEW = 0.1, 16, 4
OPTIONS = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.SCROLLING)


def run(effort: Effort) -> list[Table]:
    """Measure decisions on one host and on three, and prism's own cost."""
    number, turns = (2_000, 3) if effort == FULL else (96, 1)
    questions = [_question(each) for each in range(number)]
    return [
        _throughput(questions, turns),
        *_against_a_program(questions[: number // 4], turns),
        _own_cost(questions, turns),
    ]


def _throughput(questions: Sequence[Question], turns: int) -> Table:
    with ExitStack() as stack:
        hosts = [stack.enter_context(model_server())[0] for _ in range(3)]
        ways: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "prism, 1 host": lambda: _prism(hosts[:1], questions),
            "prism, 3 hosts": lambda: _prism(hosts, questions),
        }
        samples: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(turns):
            for name, way in ways.items():
                samples[name].append(_timed(way))
    one, three = (Measurement(name, tuple(taken)) for name, taken in samples.items())
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


def _against_a_program(questions: Sequence[Question], turns: int) -> list[Table]:
    """Compare time and CPU with a program of twenty lines that sends the same requests."""
    seconds: dict[str, list[float]] = {"program": [], "prism": []}
    cpu: dict[str, list[float]] = {"program": [], "prism": []}
    with model_server(slots=FEW) as (host, _):
        bodies = _bodies_of(questions)
        ways: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "program": lambda: _program(host, bodies),
            "prism": lambda: _prism([host], questions, FEW),
        }
        for way in ways.values():
            _timed(way)  # what is loaded and connected once is not counted
        for _ in range(turns):
            for name, way in ways.items():
                began = process_time()
                seconds[name].append(_timed(way))
                cpu[name].append(process_time() - began)

    title = f"{len(questions):,} decisions, 100 ms an answer, {FEW} slots: "
    program, prism = (Measurement(name, tuple(taken)) for name, taken in seconds.items())
    cpu_program, cpu_prism = (Measurement(name, tuple(taken)) for name, taken in cpu.items())
    wall = ratio("prism's time against the program's", prism, program, at_most=1.15)
    used = ratio("prism's CPU against the program's", cpu_prism, cpu_program, at_most=1.5)
    return [
        Table(f"{title}time", "s", program.name, [program, prism], [*wall]),
        Table(f"{title}CPU", "s", cpu_program.name, [cpu_program, cpu_prism], [*used]),
    ]


def _bodies_of(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Return the requests that prism sends for questions."""

    async def ask() -> None:
        async with pool_of([server.host]) as pool:
            await Reasoner(pool, mode="chat").decide_many(questions)

    with FakeOllama() as server:
        asyncio.run(ask())
        return [dict(asked.body) for asked in server.questions]


async def _program(host: str, bodies: Sequence[dict[str, Any]]) -> None:
    """Send requests with Ollama's own client, as many at once as there are slots."""
    slots = asyncio.Semaphore(FEW)

    async def ask(body: dict[str, Any]) -> str:
        async with slots:
            reply = await client.chat(**body)
        return str(json.loads(reply.message.content or "")["next_state"])

    client = ollama.AsyncClient(host=host, timeout=60)
    await asyncio.gather(*map(ask, bodies))
    await client.close()


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


def pool_of(hosts: Sequence[str], concurrency: int | None = None) -> Any:
    # a few more wait at the server, so none is idle
    return Model(MODEL, hosts, concurrency=concurrency or SLOTS + SLOTS // 4).as_client()


async def _prism(
    hosts: Sequence[str], questions: Sequence[Question], concurrency: int | None = None
) -> None:
    async with pool_of(hosts, concurrency) as pool:
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
