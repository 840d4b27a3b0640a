"""The prompt of a cycle: what never changes first, then the memory, then what is to be done now.

A server keeps what it has worked out for the beginning of a prompt, so prompts differ as late as
they can: role, instructions, descriptions and goal are the same in all cycles, new memories and
thoughts come after older ones, and what depends on the state comes last.

Everything that comes from a memory, a thought or the goal is escaped as in XML, so that no value
can end the element it stands in, or begin another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from prism.errors import UnknownStateError
from prism.statechart.reasoner._tokens import TokenCounter, count_tokens

_PAGING_ACTIONS = ("page_out", "page_in")
_WITH_VALUE = ("working_memory_add", "storage_save")

_FORMS: Mapping[str, str] = {
    "thinking": """\
You are in the state thinking. Reply with one agent element and nothing else:
<agent>
<next_state>executing</next_state>
<thinking_log>What you have found out, and what to do next.</thinking_log>
</agent>
next_state is one word: thinking to go on thinking, executing to carry out one action, or paging \
to make room in working memory.""",
    "executing": """\
You are in the state executing. Reply with one agent element that holds one action, and nothing \
else:
<agent>
<action>
<type>{example}</type>
<tags>name_of_the_memory</tags>{value}
</action>
</agent>
tags is one identifier without spaces.{note}""",
    "paging": """\
You are in the state paging. Reply with one agent element that holds one action, and nothing else:
<agent>
<action>
<type>page_out</type>
<tags>name_of_the_memory</tags>
</action>
</agent>
tags names one memory, or several separated by commas.""",
}
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class PromptTexts(Protocol):
    """What a prompt takes from a configuration."""

    @property
    def role(self) -> str:
        """What the agent is."""

    @property
    def instructions(self) -> str:
        """How it is to reply."""

    @property
    def goal(self) -> str | None:
        """What it is to achieve."""

    @property
    def state_description(self) -> Mapping[str, str]:
        """What each state is for."""

    @property
    def available_actions(self) -> Mapping[str, str]:
        """What each action does."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a cycle.

    Args:
        text: The text.
        tokens: How many tokens it has.
        fixed_tokens: How many it would have without memory and log.
    """

    text: str
    tokens: int
    fixed_tokens: int


def build_prompt(
    config: PromptTexts,
    state: str,
    working: Mapping[str, Any],
    thoughts: Mapping[str, str],
    *,
    stored: Iterable[str] = (),
    goal: str | None = None,
    count: TokenCounter = count_tokens,
) -> Prompt:
    """Return the prompt of a cycle.

    Args:
        config: The texts.
        state: The state that the agent is in.
        working: The working memory.
        thoughts: The log, oldest first.
        stored: Tags of memories in storage that may be wanted; the prompt names them.
        goal: What is to be achieved; the configuration's goal by default.
        count: Counts tokens.

    Raises:
        UnknownStateError: If there is no such state.
    """
    if state not in _FORMS:
        raise UnknownStateError(f"there is no state {state!r}: use {', '.join(_FORMS)}")

    given = config.goal if goal is None else goal
    text = _text(config, state, working, thoughts, stored, given)
    fixed = _text(config, state, {}, {}, (), given)

    return Prompt(text, count(text), count(fixed))


def render_memory(tag: str, value: Any) -> str:
    """Return one memory as the prompt shows it, a line break included."""
    return f"{_element('memory', 'tag', tag, value)}\n"


def _text(
    config: PromptTexts,
    state: str,
    working: Mapping[str, Any],
    thoughts: Mapping[str, str],
    stored: Iterable[str],
    goal: str | None,
) -> str:
    found = [f'<memory tag="{_quoted(tag)}"/>' for tag in stored]
    memories = (_element("memory", "tag", tag, value) for tag, value in working.items())
    log = (_element("thought", "key", key, value) for key, value in thoughts.items())
    parts = [
        config.role,
        config.instructions,
        _section("states", _listed(config.state_description)),
        _section("goal", [_escaped(goal)]) if goal else "",
        _section("working_memory", memories),
        _section("thinking_log", log),
        _section("storage", found) if found else "",
        _now(config, state),
    ]

    return "\n\n".join(part for part in parts if part) + "\n"


def _now(config: PromptTexts, state: str) -> str:
    if state == "thinking":
        return _FORMS[state]

    actions = {
        name: text
        for name, text in config.available_actions.items()
        if (name in _PAGING_ACTIONS) == (state == "paging")
    }
    form = _filled(_FORMS[state], actions) if state == "executing" else _FORMS[state]

    return f"{_section('available_actions', _listed(actions))}\n\n{form}"


def _filled(form: str, actions: Mapping[str, str]) -> str:
    """Return the form of executing with an action that is available as its example."""
    with_value = [name for name in _WITH_VALUE if name in actions]
    example = next(iter(with_value or actions), _WITH_VALUE[0])
    value = "\n<value>What it says.</value>" if with_value else ""
    note = f" Only {' and '.join(with_value)} take a value." if with_value else ""

    return form.format(example=example, value=value, note=note)


def _listed(texts: Mapping[str, str]) -> Iterator[str]:
    return (f"{name}: {text}" for name, text in texts.items())


def _section(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f"<{name}>", *lines, f"</{name}>"])


def _element(name: str, attribute: str, key: str, value: Any) -> str:
    shown = value if isinstance(value, str) else _json(value)
    return f'<{name} {attribute}="{_quoted(key)}">{_escaped(shown)}</{name}>'


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _escaped(text: str) -> str:
    clean = _UNFIT.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    return clean.replace("&", "&amp;").replace("<", "&lt;")
