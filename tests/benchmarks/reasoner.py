"""Decisions by a model: how busy prism keeps the servers' slots, and what a run costs.

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
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import IO, Any
from unittest import mock

import ollama

from prism import Run
from prism.agents import SocialAgent
from prism.llm import Model
from prism.reasoner import Question, Reasoner
from prism.social import Draft, Post
from prism.statechart import AgentState
from tests.benchmarks.harness import FULL, Effort, Measurement, Table, ratio

MODEL = "llama3.2"
LATENCY, SLOTS, FEW_SLOTS = 0.1, 16, 4
OPTIONS = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.SCROLLING)


def run(effort: Effort) -> list[Table]:
    """Measure decisions on one host and on three, and a run beside a plain program."""
    number, turns = (2_000, 3) if effort == FULL else (96, 1)
    questions = [_question(each) for each in range(number)]
    return [_throughput(questions, turns), *_beside_a_program(number // 2, turns)]


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


def _beside_a_program(agents: int, turns: int) -> list[Table]:
    """Measure a run, and a program of asyncio that sends the same requests."""
    requests: list[dict[str, Any]] = []
    chat = ollama.AsyncClient.chat

    def noted(client: Any, **request: Any) -> Any:
        requests.append(request)
        return chat(client, **request)

    with model_server(slots=FEW_SLOTS) as (host, _), TemporaryDirectory() as folder:
        model = Model(MODEL, host, concurrency=FEW_SLOTS)
        with mock.patch.object(ollama.AsyncClient, "chat", noted):
            Run("vaccination", agents, rounds=1, seed=1, model=model).run()

        def run(turn: int) -> None:
            Run("vaccination", agents, rounds=1, seed=1, model=model).keep(f"{folder}/{turn}")

        def program(_turn: int) -> None:
            asyncio.run(_program(host, requests))

        taken = [(_spent(run, turn), _spent(program, turn)) for turn in range(turns)]

    tables = []
    for kind, (what, most) in enumerate((("Wall time", 1.15), ("CPU time", 1.5))):
        ours = Measurement("a run that is kept", tuple(pair[0][kind] for pair in taken))
        plain = Measurement("20 lines of asyncio", tuple(pair[1][kind] for pair in taken))
        claims = ratio(f"{what} of a run", ours, plain, at_most=most)
        title = f"{what} of {len(requests):,} decisions, {FEW_SLOTS} slots"
        tables.append(Table(title, "s", plain.name, [plain, ours], claims))
    return tables


async def _program(host: str, requests: Sequence[dict[str, Any]]) -> None:
    client, slots = ollama.AsyncClient(host), asyncio.Semaphore(FEW_SLOTS)

    async def ask(request: dict[str, Any]) -> Any:
        async with slots:
            reply = await client.chat(**request)
        return json.loads(reply.message.content or "")

    await asyncio.gather(*map(ask, requests))


def _spent(way: Callable[[int], None], turn: int) -> tuple[float, float]:
    wall, processor = perf_counter(), process_time()
    way(turn)
    return perf_counter() - wall, process_time() - processor


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
