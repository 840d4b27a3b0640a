"""Putting a question to an agent that is not running, from what its memory holds."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from prism.cognition._config import Config
from prism.cognition._memory._memory import Memory
from prism.cognition._paging import going
from prism.cognition._prompts import Seen, memory_sections, without
from prism.errors import LLMError
from prism.runs._lent import writer_of
from prism.statechart.reasoner._texts import TextCall
from prism.statechart.reasoner._tokens import TokenCounter, count_tokens

_MOST_FOUND = 20
_ASKED = """\
You are asked a question. Answer it in plain words from what is above, without XML and without \
JSON. If the answer is not there, say that you do not know.

Question: {question}
"""


async def ask_memory(
    memory: Memory,
    question: str,
    client: Any,
    *,
    config: Config | None = None,
    count: TokenCounter = count_tokens,
) -> str:
    """Return a model's answer to a question about a memory, without changing anything.

    The prompt shows the working memory, the thoughts, and the best matches in storage, up to the
    hard limit.

    Args:
        memory: The memory, which may be open only for reading.
        question: The question.
        client: Answers the question: a writer, or any client that a `Writer` takes.
        config: The agent's role, goal and hard limit; by default those of the specification.
        count: Counts tokens.

    Raises:
        LLMError: If the model does not answer.
    """
    config = config or Config()
    call = TextCall("ask", "ask", _prompt(memory, question, config, count))
    written = await writer_of(client).write(call)
    if written.has_failed or not (written.text or "").strip():
        raise LLMError(written.reason or "the model wrote nothing")

    return str(written.text).strip()


def _prompt(memory: Memory, question: str, config: Config, count: TokenCounter) -> str:
    """Return the prompt: best matches first to come, and the oldest thoughts first to go."""
    found = {match.tag: match.value for match in memory.search(question, _MOST_FOUND)}
    seen = replace(Seen.of(memory), found=found, last_action=None, news=())
    order = [("found", tag) for tag in reversed(found)]
    order += [("thoughts", key) for key in memory.thoughts]
    order += [("working", tag) for tag in memory.least_recently_used()]
    most = config.hard_limit.max_tokens if config.hard_limit.enable else inf
    gone = going(seen, order, lambda it: count(_text(it, question, config)) <= most)
    return _text(without(seen, gone), question, config)


def _text(seen: Seen, question: str, config: Config) -> str:
    goal = f"Your goal is: {config.goal}" if config.goal else ""
    # what was found is shown as what a search of the agent's own would show
    asked = {"cycle": 0, "state": "asked", "type": "storage_search", "outcome": "done"}
    sections = memory_sections(replace(seen, last_action=asked) if seen.found else seen)
    parts = [config.role, goal, *sections, _ASKED.format(question=question)]
    return "\n\n".join(part for part in parts if part)
