"""An agent whose model writes anything at all: bytes, damaged replies, and good ones among them."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from prism.programs.thinking import (
    CognitiveAgent,
    Config,
    Cycle,
    Memory,
    Paging,
    StorageLimits,
    ThinkingLog,
    cognitive_chart,
)
from prism.programs.thinking._memory import as_tag
from prism.telemetry.events import TRANSITION
from prism.testing import ScriptedWriter
from tests.kit.agent_replies import RENDERINGS, TYPES, as_json, replies
from tests.kit.cognition import LARGEST, letters, limited

EACH = 25
"""Replies that one agent gets, or pairs of them."""

AT_ONCE = 200
"""Agents that are drawn together."""

SOFT, HARD = LARGEST + 300, LARGEST + 700
MOST_THOUGHTS = 3
PARTS = ("working_memory", "storage")
VERSIONS = StorageLimits().versions
STEPS = {(row.trigger, str(row.source), str(row.target)) for row in cognitive_chart().transitions}
"""The steps that the chart allows."""


def element(name: str, text: str) -> str:
    """Return an element."""
    return f"<{name}>{text}</{name}>"


def acting(kind: str, tags: str, value: str) -> str:
    """Return the reply of an agent that acts."""
    parts = element("type", kind) + element("tags", tags) + element("value", value)
    return element("agent", element("action", parts))


def thinking(state: str, log: str) -> str:
    """Return the reply of an agent that thinks."""
    return element("agent", element("next_state", state) + element("thinking_log", log))


# few tags, so that they meet, and values of which some are beyond the limits
TAGS = st.sampled_from(["a", "b", "c d"])
VALUES = st.text("xyz ", max_size=20) | st.integers(50, 900).map("v".__mul__)
ACTIONS = st.builds(acting, st.sampled_from(TYPES), TAGS, VALUES)
GOOD = (
    ACTIONS
    | st.builds(thinking, st.sampled_from(["thinking", "executing", "paging"]), VALUES)
    | st.builds(lambda render, reply: render(reply), st.sampled_from(RENDERINGS), replies())
    | st.builds(as_json, replies())
)


@st.composite
def damaged(draw: Callable[[Any], Any]) -> str:
    """Return a good reply of which a part is cut out, doubled, or exchanged."""
    text: str = draw(GOOD)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 20)))
    put_in = draw(st.sampled_from(["", text[start:end] * 2, "<", "</", ">", "&", "</value>", "}"]))

    return text[:start] + put_in + text[end:]


BYTES = st.binary(max_size=30).map(lambda data: data.decode("utf-8", "surrogateescape"))
ONE = st.tuples(GOOD) | st.tuples(damaged()) | st.tuples(BYTES)
UNDONE_BY = {"working_memory_add": "working_memory_remove", "storage_save": "storage_load"}
TWO = st.tuples(st.just(thinking("executing", "now")), ACTIONS | damaged())
"""An action has a chance to be carried out."""

NOW = thinking("executing", "now")
FOUR = st.builds(
    lambda kind, tag, value: (NOW, acting(kind, tag, value), NOW, acting(UNDONE_BY[kind], tag, "")),
    st.sampled_from(list(UNDONE_BY)),
    TAGS,
    st.text("xyz", min_size=1, max_size=20),
)
"""An action whose memory the next one takes away, or brings back, before it has gone elsewhere."""

WRITTEN = st.lists(ONE | TWO | TWO | FOUR, min_size=EACH, max_size=EACH).map(
    lambda parts: list(chain.from_iterable(parts))
)
"""What a model writes, one reply after the other."""


class Watched:
    """An agent in memory, whose every step is checked.

    Args:
        config: What it is told.
        written: What its model writes, in order.
    """

    def __init__(self, config: Config, written: list[str]) -> None:
        self.prompts: list[str] = []
        self.steps: list[tuple[str, str, str]] = []
        self.became: Counter[str] = Counter()
        left = iter(written)
        self.memory = Memory.in_memory({})
        self.agent = CognitiveAgent(
            config,
            self.memory,
            ScriptedWriter(lambda call: self.prompts.append(call.prompt) or next(left)),
            count=letters,
            logger=self,
        )

    def info(self, event: str, **about: Any) -> None:
        """Hear what happens."""
        if event == TRANSITION:
            self.steps.append((about["trigger"], about["from_state"], about["to_state"]))

    def warning(self, event: str, **about: Any) -> None:
        """Hear what goes wrong."""
        self.info(event, **about)

    async def cycle(self) -> None:
        """Run a cycle, and check it."""
        before, heard = self.memory.to_dict(), len(self.steps)
        cycle = await self.agent.cycle()
        after = self.memory.to_dict()

        assert set(self.steps[heard:]) <= STEPS
        assert cycle.next_state == after["state"]
        assert letters("".join(self.prompts[-1:])) <= HARD
        assert len(self.memory.thoughts) <= MOST_THOUGHTS
        assert_nothing_lost(cycle, before, after)

        self.became[f"{cycle.state} {cycle.outcome}"] += 1
        self.became.update(paged.why for paged in cycle.paged)
        if cycle.action is not None:
            self.became[f"{cycle.action.type} {cycle.action.outcome}"] += 1

    async def run(self, number: int) -> None:
        """Run until a number of replies has been used."""
        while len(self.prompts) < number:
            await self.cycle()


def assert_nothing_lost(cycle: Cycle, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Assert that all that was known still is, but for what the model itself wrote over."""
    kind, tag = done_by(cycle)
    versions = old_values(after)

    for name, value in before["storage"].items():
        assert value in (after["storage"].get(name), *versions.get(name, []))
    for name, old in old_values(before).items():
        # one that is the present value again is no old one
        known = [*versions.get(name, []), *(after[part].get(name) for part in PARTS)]
        assert all(each in known for each in old) or len(versions[name]) == VERSIONS
    for name, value in before["working_memory"].items():
        is_replaced = tag == name and kind in ("working_memory_add", "working_memory_remove")
        # unless a limit had moved it to storage before
        is_replaced &= not any(name in paged.moved_out for paged in cycle.paged)
        if not is_replaced:
            places = (after["working_memory"].get(name), after["storage"].get(name))
            assert value in (*places, *versions.get(name, []))


def old_values(memory: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values that were replaced, by their tags, whenever that was."""
    versions = memory["prism"].get("versions", {})
    return {tag: [each["value"] for each in old] for tag, old in versions.items()}


def done_by(cycle: Cycle) -> tuple[str, str]:
    """Return type and tag of the action that was carried out; nothing if none was."""
    done = cycle.action
    return (done.type, as_tag(done.tags)) if done and done.outcome == "done" else ("", "")


def config_of(policy: Any) -> Config:
    """Return a configuration with limits that are soon reached."""
    log = ThinkingLog(max_entries=MOST_THOUGHTS)
    return limited(SOFT, HARD, paging=Paging(policy), thinking_log=log)


def watch_agents(number: int) -> Counter[str]:
    """Let a number of agents get replies of all kinds, and return what became of their cycles."""
    became: Counter[str] = Counter()
    for start in range(0, number, AT_ONCE):
        became += watch_some(min(AT_ONCE, number - start), start)

    return became


def watch_some(number: int, start: int) -> Counter[str]:
    """Do so for agents that are drawn from a seed: what is drawn together is kept in memory."""
    became: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=number, suppress_health_check=list(HealthCheck), database=None)
    @given(WRITTEN, st.sampled_from(["lru", "model"]))
    def watch(written: list[str], policy: str) -> None:
        watched = Watched(config_of(policy), written)
        asyncio.run(watched.run(len(written)))
        became.update(watched.became)
        became["replies"] += len(watched.prompts)

    watch()

    return became


WHAT_HAPPENS = {
    *("thinking done", "thinking refused", "thinking unusable", "executing done"),
    *("executing refused", "paging done", "soft_limit", "hard_limit", "asked"),
    *(f"{kind} done" for kind in TYPES if kind != "page_out"),
}


@pytest.mark.parametrize("agents", [2, pytest.param(15, marks=pytest.mark.slow)])
def test_no_reply_breaks_an_agent(agents: int) -> None:
    """Nothing raises, no limit is passed, nothing is lost, and all steps are the chart's."""
    assert watch_agents(agents)["replies"] >= agents * EACH


@pytest.mark.long
def test_thousands_of_replies_break_no_agent() -> None:
    """The same holds for ten thousand replies, or ``PRISM_REPLIES``, and everything happens."""
    replies = int(os.environ.get("PRISM_REPLIES", "10000"))
    became = watch_agents(replies * 36 // 1000)
    often = 100 if replies >= 100_000 else 1

    assert became["replies"] >= replies
    assert {what for what in WHAT_HAPPENS if became[what] < often} == set()
