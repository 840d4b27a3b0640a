"""The prompt of a cycle: what never changes first, then the memory, then what is to be done now.

A server keeps what it has worked out for the beginning of a prompt, so prompts differ as late as
they can: role, instructions, descriptions and goal are the same in all cycles, new memories and
thoughts come after older ones, and what depends on the state comes last.

Everything that comes from a memory, a thought or the goal is escaped as in XML, so that no value
can end the element it stands in, or begin another one. The form of the reply is shown once, without
values that a model could take for content: as JSON where the server is sent a schema, else as XML.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, Self

from prism.errors import InputError
from prism.programs.thinking._actions import Action, schema_of
from prism.programs.thinking._config import AvailableActions, Config, StateDescription
from prism.programs.thinking._memory import Memory, to_text
from prism.reasoner.requests import TokenCounter
from prism.reasoner.wording import shortened

STATES = tuple(StateDescription.model_fields)
"""The names of the states."""

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_XML, _JSON = "valid XML containing an 'agent' tag", "one JSON object"
_XML_FORM = "Reply with one agent element of this form and nothing else, and fill in its parts:"
_JSON_FORM = "Reply with one JSON object of this form, and fill in its parts:"


@dataclass(frozen=True, slots=True)
class View:
    """The part of its memory that an agent sees.

    Args:
        working: The working memory.
        thoughts: The log, oldest first.
        stored: How many memories are in storage.
        results: Memories that the last action found, by tag.
        last_action: The last action and its result, and what has failed since.
        news: What the agent has been told, oldest first.
    """

    working: Mapping[str, Any] = field(default_factory=dict)
    thoughts: Mapping[str, str] = field(default_factory=dict)
    stored: int = 0
    results: Mapping[str, Any] = field(default_factory=dict)
    last_action: str = ""
    news: Sequence[str] = ()

    def without(self, gone: Iterable[str]) -> Self:
        """Return the view without some memories and thoughts."""
        tags = frozenset(gone)
        return replace(
            self,
            working={tag: value for tag, value in self.working.items() if tag not in tags},
            thoughts={key: text for key, text in self.thoughts.items() if key not in tags},
        )


@dataclass(frozen=True, slots=True)
class Form:
    """What all prompts of an agent have in common.

    Args:
        config: The texts.
        actions: The agent's actions, by name.
        is_json: Whether the server is sent a schema, and so replies in JSON.
    """

    config: Config
    actions: Mapping[str, Action]
    is_json: bool = False

    def prompt(self, state: str, view: View) -> str:
        """Return the prompt of a cycle."""
        goal = self.config.goal
        parts = [
            *self._beginning(),
            _section("goal", [_escaped(goal)]) if goal else "",
            *_memory_sections(view),
            *self._end(state),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def instructions(self, state: str) -> str:
        """Return the prompt without the goal and the memory."""
        return "\n\n".join([*self._beginning(), *self._end(state)])

    @property
    def offered(self) -> dict[str, Action]:
        """The actions: the application's, which small models should see first, and the memory's."""
        texts = dict(self.config.available_actions)
        application = {name: each for name, each in self.actions.items() if name not in texts}
        return {**application, **{name: self.actions[name] for name, text in texts.items() if text}}

    def schema(self, state: str) -> dict[str, Any]:
        """Return the JSON Schema of what a model replies, for servers that take one."""
        if state == "thinking":
            next_state = {"type": "string", "enum": list(STATES)}
            thought = {"type": "string", "minLength": 1}
            return _object(agent=_object(next_state=next_state, thinking_log=thought))
        action = dict(schema_of(tuple(each.model for each in self.offered.values())))
        definitions = action.pop("$defs", {})
        return {**_object(agent=_object(action=action)), "$defs": definitions}

    def _beginning(self) -> Iterator[str]:
        instructions = self.config.instructions
        yield self.config.role
        yield instructions.replace(_XML, _JSON) if self.is_json else instructions
        descriptions = self.config.state_description
        yield _section("states", (f"{state}: {text}" for state, text in descriptions))

    def _end(self, state: str) -> Iterator[str]:
        yield f"You are in the state {state}."
        if state == "thinking":
            # an agent that knows what it can do decides better whether to do it
            names = [name for name in self.actions if name not in AvailableActions.model_fields]
            if names:
                yield _section("own_actions", map(self._described, names))
            yield self._form_of({"next_state": "executing", "thinking_log": ""})
            return

        offered = self.offered
        yield _section("available_actions", map(self._described, offered))
        first = next(iter(offered))
        yield self._form_of({"action": {"type": first, **dict.fromkeys(offered[first].fields, "")}})

    def _described(self, name: str) -> str:
        return self.actions[name].text(getattr(self.config.available_actions, name, None))

    def _form_of(self, agent: Mapping[str, Any]) -> str:
        """Return the form of a reply, with nothing in it that could be taken for content."""
        if self.is_json:
            return f"{_JSON_FORM}\n{json.dumps({'agent': agent})}"
        return f"{_XML_FORM}\n<agent>{_as_xml(agent)}</agent>"


def _as_xml(parts: Mapping[str, Any]) -> str:
    return "".join(
        f"<{name}>{part if isinstance(part, str) else _as_xml(part)}</{name}>"
        for name, part in parts.items()
    )


def _object(**parts: Any) -> dict[str, Any]:
    return {"type": "object", "properties": parts, "required": list(parts)}


def _memory_sections(view: View) -> Iterator[str]:
    """Yield what a prompt shows of a memory, part by part; empty for what there is not."""
    yield _section("working_memory", _elements("memory", "tag", view.working))
    yield _section("thinking_log", _elements("thought", "key", view.thoughts))
    if view.news:
        yield _section("news", (f"<new>{_escaped(each)}</new>" for each in view.news))
    kept = f"{view.stored:,} memories are stored" if view.stored != 1 else "1 memory is stored"
    yield _section("storage", [f"{kept}."])
    if view.last_action:
        lines = [_escaped(view.last_action), *_elements("memory", "tag", view.results)]
        yield _section("last_action", lines)


def _section(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f"<{name}>", *lines, f"</{name}>"])


def _elements(name: str, attribute: str, values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        tag = _escaped(key).replace('"', "&quot;")
        yield f'<{name} {attribute}="{tag}">{_escaped(to_text(value))}</{name}>'


def _escaped(text: str) -> str:
    clean = _UNFIT.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    return clean.replace("&", "&amp;").replace("<", "&lt;")


# Limits

PagingReason = Literal["soft_limit", "hard_limit", "asked"]

_LEAST = View(stored=10**9)
_DOWN_TO = 3 / 4
"""Share of the room for memories that is left in use, so that the next few fit."""

_MOST_OF_MATCH = (600, 150, 0)
"""Characters of each memory that was found, the most that fit."""

_TOKENS_PER_ESTIMATE = 1.5
"""How many tokens an estimated token may be: languages other than English and code take more."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a cycle.

    Args:
        text: The text.
        tokens: How many tokens it has.
        moving: Thoughts and memories that move to storage, in this order, as it lacks them.
        tokens_before: Tokens of the prompt with them.
    """

    text: str
    tokens: int
    moving: tuple[str, ...] = ()
    tokens_before: int = 0


@dataclass(frozen=True, slots=True)
class Paged:
    """The moves of a paging, with the sizes of the prompt before and after in tokens.

    Args:
        why: The limit that was passed, or ``asked`` if a reply named paging as the next state.
        moved_out: Tags of memories, or keys of thoughts, that moved to storage.
        tokens_before: Tokens of the prompt before.
        tokens_after: Tokens of the prompt after.
        limit: The limit that was passed.
    """

    why: PagingReason
    moved_out: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    limit: int | None


class Pager:
    """Makes the prompts of one agent, and keeps them within its limits.

    Args:
        form: What all prompts have in common.
        count: Counts tokens.
        window: Tokens of prompt and reply together that the server has, if known: limits are
            lowered to it.

    Raises:
        InputError: If the fixed parts of every prompt already exceed a limit.

    Attributes:
        soft: The soft limit in tokens; None if there is none.
        hard: The hard limit.
        reply: The bound of a reply in tokens.
    """

    def __init__(self, form: Form, count: TokenCounter, window: int | None = None) -> None:
        self.form: Form = form
        self._count = count
        soft, hard = form.config.paging_limit, form.config.hard_limit
        self.soft: int | None = soft.max_tokens if soft.enable else None
        self.hard: int | None = hard.max_tokens if hard.enable else None
        self.reply: int = -(-(self.hard or 8192) // 3)
        self._require_room("the limit: raise it, or shorten the texts or the goal")
        if window is not None:
            self._lower_to(window)

    def _lower_to(self, window: int) -> None:
        self.reply = min(self.reply, window // 4)
        room = int((window - self.reply) / _TOKENS_PER_ESTIMATE)
        if room >= (self.hard or inf):
            return
        share = (self.soft or room) / (self.hard or max(room, self.soft or room))
        fixed = self._fixed("thinking")
        self.hard = room
        self.soft = max(int(room * share), fixed + (room - fixed) // 2)
        self._require_room(
            f"the server's window of {window:,} tokens: load the model with a larger one "
            "(llama.cpp --ctx-size, Ollama Model(window=...), LM Studio's context length)"
        )

    def _require_room(self, cause: str) -> None:
        """Refuse a limit that a prompt exceeds without memories."""
        limits = [(state, self.hard, "hard_limit") for state in STATES]
        for state, limit, name in [*limits, ("thinking", self.soft, "paging_limit")]:
            if limit is not None and (tokens := self._fixed(state)) > limit:
                problem = f"the prompt in state {state} has {tokens:,} tokens even without memories"
                more = f"{problem}, more than the {limit:,} of {cause}"
                is_set = limit == getattr(self.form.config, name).max_tokens
                raise InputError(more, field=f"{name}.max_tokens" if is_set else None)

    def _fixed(self, state: str) -> int:
        return self._made(state, _LEAST).tokens

    def _made(self, state: str, view: View) -> Prompt:
        text = self.form.prompt(state, view)
        return Prompt(text, self._count(text))

    def has_passed_soft_limit(self, memory: Memory) -> bool:
        """Return whether the thinking prompt is above the soft limit, and anything can move."""
        can_move = bool(memory.working) or len(memory.thoughts) > 1
        return can_move and self._thinking(memory) > (self.soft or inf)

    def has_room_for(self, tag: str, value: Any) -> bool:
        """Return whether a prompt with this memory alone is within the hard limit."""
        last = f"In cycle 1000000 (executing): working_memory_remove {tag}: done"
        alone = replace(_LEAST, working={tag: value}, last_action=last)
        largest = max(self._made(state, alone).tokens for state in STATES)
        return largest <= (self.hard or inf)

    def fit(self, memory: Memory, state: str) -> Prompt:
        """Return a prompt within the hard limit, and what has to move to storage for it."""
        view, hard = self._view(memory), self.hard or inf
        for most in _MOST_OF_MATCH:
            # of a tag in working memory, storage may have an older value
            results = {
                tag: shortened(to_text(memory.stored(tag)), most)
                for tag in memory.progress.matches
                if most and tag in memory.storage and tag not in memory.working
            }
            whole = self._made(state, replace(view, results=results))
            if whole.tokens <= hard:
                return whole
        order = [*memory.least_recently_used(), *memory.thoughts]
        moving = self._first_to_go(state, view, order, hard)
        left = view.without(moving)
        for shorter in ({}, {"last_action": ""}, {"news": left.news[-1:]}, {"news": ()}):
            left = replace(left, **shorter)
            prompt = self._made(state, left)
            if prompt.tokens <= hard:
                break
        return replace(prompt, moving=tuple(moving), tokens_before=whole.tokens)

    def make_room(self, memory: Memory, prompt: Prompt) -> Paged | None:
        """Move to storage what has to move; None if nothing has."""
        if not prompt.moving:
            return None
        for tag in prompt.moving:
            memory.page_out(tag)
        sizes = prompt.tokens_before, prompt.tokens
        return Paged("hard_limit", prompt.moving, *sizes, self.hard)

    def page(self, memory: Memory, why: PagingReason) -> Paged:
        """Move the least recently used memories to storage, so that the next few have room."""
        view = self._view(memory)
        before = self._made("thinking", view).tokens
        fixed = self._made("thinking", replace(view, working={}, thoughts={})).tokens
        limit = fixed + max(0, (self.soft or fixed) - fixed) * _DOWN_TO
        order = [*memory.least_recently_used(), *[*memory.thoughts][:-1]]
        moved = self._first_to_go("thinking", view, order, limit)
        for tag in moved:
            memory.page_out(tag)
        return Paged(why, tuple(moved), before, self._thinking(memory), self.soft)

    def _view(self, memory: Memory) -> View:
        """Return what a prompt shows of a memory, but for what was found."""
        progress = memory.progress
        return View(
            memory.working,
            memory.thoughts if self.form.config.thinking_log.enable else {},
            len(memory.storage),
            last_action="\n".join(filter(None, (progress.last_action, progress.fault))),
            news=progress.news,
        )

    def _thinking(self, memory: Memory) -> int:
        return self._made("thinking", self._view(memory)).tokens

    def _first_to_go(self, state: str, view: View, order: list[str], limit: float) -> list[str]:
        """Return the first memories and thoughts of an order, as many as a limit requires."""

        def fits(number: int) -> bool:
            return self._made(state, view.without(order[:number])).tokens <= limit

        return order[: bisect_left(range(len(order)), True, key=fits)]
