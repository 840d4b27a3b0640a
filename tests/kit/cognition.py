"""Replies of a thinking agent, and agents that get them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from prism.programs.thinking import CognitiveAgent, Config, Limit, Memory
from prism.programs.thinking._actions import actions_of
from prism.programs.thinking._prompts import Form, View
from prism.reasoner import BaseWriter, TextCall
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
_LEAST = View(stored=10**9)
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
