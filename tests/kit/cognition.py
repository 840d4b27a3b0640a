"""Replies of a thinking agent, and agents that get them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from prism import Run, resume
from prism.llm import Model
from prism.programs.thinking import CognitiveAgent, Config, Cycle, Limit, Memory
from prism.programs.thinking import action as own_action
from prism.programs.thinking._actions import actions_of
from prism.programs.thinking._prompts import Form, Seen
from prism.programs.thinking._replies import read_reply
from prism.statechart import BaseWriter, Cost, TextCall, Written
from prism.testing import FakeOllama, ScriptedWriter
from tests.kit import kept as runs
from tests.kit.writers import Reply, writer_of


def thought(text: str = "so be it", next_state: str | None = None) -> str:
    """Return the reply of an agent that thinks."""
    named = "" if next_state is None else f"<next_state>{next_state}</next_state>"
    return f"<agent>{named}<thinking_log>{escape(text)}</thinking_log></agent>"


def action(kind: str, tags: str, value: str | None = None) -> str:
    """Return the reply of an agent that acts."""
    told = "" if value is None else f"<value>{escape(value)}</value>"
    return f"<agent><action><type>{kind}</type><tags>{tags}</tags>{told}</action></agent>"


def add(tags: str, value: str) -> str:
    """Return the reply of an agent that adds to working memory."""
    return action("working_memory_add", tags, value)


def limited(soft: int | None, hard: int | None = None, **others: Any) -> Config:
    """Return a configuration with limits; None for no limit."""
    config = Config(**others)
    limits = {
        "paging_limit": Limit(enable=soft is not None, max_tokens=soft or 1),
        "hard_limit": Limit(enable=hard is not None, max_tokens=hard or 10**6),
    }
    return config.model_copy(update=limits)


def thinker(
    replies: Sequence[Reply] | Callable[[TextCall], str] | BaseWriter = (),
    memory: Memory | Mapping[str, Any] | None = None,
    config: Config | None = None,
    **settings: Any,
) -> CognitiveAgent:
    """Return an agent that gets these replies, the last of them for ever."""
    known = memory if isinstance(memory, Memory) else Memory.in_memory(memory)
    writer = replies if isinstance(replies, BaseWriter) else writer_of(replies or (thought(),))
    return CognitiveAgent(config or Config(), known, writer, **settings)


def letters(prompt: str) -> int:
    """Count a token for every character."""
    return len(prompt)


_FORM = Form(Config(), actions_of(CognitiveAgent))
_LEAST = Seen(stored=10**9)
FIXED = len(_FORM.prompt("thinking", _LEAST))
"""Letters of a thinking prompt without memories."""

LARGEST = max(len(_FORM.prompt(state, _LEAST)) for state in ("thinking", "executing", "paging"))


def working(number: int, letters_each: int = 100) -> dict[str, Any]:
    """Return a memory with so many entries, each used one cycle after the one before."""
    names = [f"m{place}" for place in range(number)]
    return {
        "working_memory": {name: name[-1] * letters_each for name in names},
        "prism": {
            "cycle": number,
            "next_thought": 1,
            "used": {name: place for place, name in enumerate(names)},
        },
    }


class Waver(CognitiveAgent):
    """An agent with an action of its own."""

    @own_action
    def wave(self, times: int) -> str:
        """Wave."""
        return f"{self.agent_id} waves {times} times"


class Windowed(ScriptedWriter):
    """A writer of prepared texts whose model sees little."""

    async def window(self) -> int:
        """Return how many tokens it sees."""
        return 2 * LARGEST + 1_400


async def all_that_happens(logger: Any) -> None:
    """Run cycles in which all happens that can happen in a cycle."""
    usage = Cost(0.1, None, None, 1, 5, 7)
    told = thought("m9", "executing")
    writer = ScriptedWriter(
        [
            Written(told, "model", read_reply(told), cost=usage),
            add("a", "1"),
            add("b", "2"),
            "nothing of use",
            Written(None, "failed", reason="down"),
            thought("on", "executing"),
            action("storage_load", "nobody"),
            thought("on", "executing"),
            "nothing of use",
            thought("make room", "paging"),
        ]
    )
    data = {**working(10), "state": "dreaming", "storage": {"m0": "older"}}
    agent = thinker(writer, data, limited(FIXED + 800), count=letters, logger=logger)
    for _ in range(12):
        await agent.cycle()

    seeing = Windowed([thought("on")])
    await thinker(seeing, {}, count=letters, logger=logger).cycle()

    waves = "<agent><action><type>wave</type><times>3</times></action></agent>"
    for reply in (waves, action("storage_search", "older")):
        data = {"state": "executing", "storage": {"m0": "older"}}
        memory = Memory.in_memory(data)
        await Waver(Config(), memory, writer_of([reply]), logger=logger).cycle()


def interrupted_run(folder: Path) -> Path:
    """Run cycles that are stopped, and go on until nothing comes of them."""
    written = iter([thought("on")])
    config, memory = folder / "config.json", folder / "memory.json"
    config.write_text(Config().to_json())
    with FakeOllama(write=lambda *_: next(written, "nothing of use")) as server:
        model = Model("llama3.2", hosts=(server.url,))
        options = Run(config, memory=memory, rounds=9, reasoner=model)
        with suppress(InterruptedError):
            runs.begin(options, folder / "thinking", on_round=_interrupt)
        resume(folder / "thinking")

    return folder / "thinking"


def _interrupt(_cycle: Cycle) -> None:
    raise InterruptedError
