"""Moves between working memory and storage that keep a prompt within its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

from prism.errors import InputError
from prism.programs.thinking._config import PAGING_ACTIONS, STATE_DESCRIPTION
from prism.programs.thinking._memory import Memory, as_tag, to_text
from prism.programs.thinking._prompts import Form, Seen
from prism.programs.thinking._replies import AskedAction
from prism.reasoner._words import TokenCounter

PagingReason = Literal["soft_limit", "hard_limit", "asked"]

_LEAST = Seen(stored=10**9)
_DOWN_TO = 3 / 4
"""Share of the room for memories that is left in use, so that the next few fit."""

_MOST_NAMED = 8
_MOST_OF_FOUND = 600
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
        by: ``lru`` if the least recently used memories moved, ``model`` if the model decided.
        moved_out: Tags of memories, or keys of thoughts, that moved to storage.
        moved_in: Tags of memories that came back.
        tokens_before: Tokens of the prompt before.
        tokens_after: Tokens of the prompt after.
        limit: The limit that was passed.
        reason: Why the model did not decide although it was asked.
    """

    why: PagingReason
    by: str
    moved_out: tuple[str, ...]
    moved_in: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    limit: int | None
    reason: str | None = None


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
        self._require_room("the limit: raise it, or shorten the texts or the goal", is_named=True)
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

    def _require_room(self, cause: str, *, is_named: bool = False) -> None:
        """Refuse a limit that a prompt exceeds without memories; name it if it is set."""
        limits = [(state, self.hard, "hard_limit") for state in STATE_DESCRIPTION]
        for state, limit, name in [*limits, ("thinking", self.soft, "paging_limit")]:
            if limit is not None and (tokens := self._fixed(state)) > limit:
                problem = f"the prompt in state {state} has {tokens:,} tokens even without memories"
                field = f"{name}.max_tokens" if is_named else None
                raise InputError(f"{problem}, more than the {limit:,} of {cause}", field=field)

    def _fixed(self, state: str) -> int:
        return self._made(state, _LEAST).tokens

    def _made(self, state: str, seen: Seen) -> Prompt:
        text = self.form.prompt(state, seen)
        return Prompt(text, self._count(text))

    def tokens_of_memory(self, memory: Memory) -> int:
        """Return how many tokens of a prompt are working memory."""
        return self._count("\n".join(f"{tag} {to_text(v)}" for tag, v in memory.working.items()))

    def has_passed_soft_limit(self, memory: Memory) -> bool:
        """Return whether the thinking prompt is above the soft limit, and anything can move."""
        can_move = bool(memory.working) or len(memory.thoughts) > 1
        return can_move and self._thinking(memory) > (self.soft or inf)

    def has_room_for(self, tag: str, value: Any) -> bool:
        """Return whether a prompt with this memory alone is within the hard limit."""
        last = f"In cycle 1000000 (executing): working_memory_remove {tag}: done"
        alone = replace(_LEAST, working={tag: value}, last_action=last)
        largest = max(self._made(state, alone).tokens for state in STATE_DESCRIPTION)
        return largest <= (self.hard or inf)

    def fit(self, memory: Memory, state: str) -> Prompt:
        """Return a prompt within the hard limit, and what has to move to storage for it."""
        seen, hard = self._seen(memory), self.hard or inf
        whole = self._made(state, self._with_hints(memory, seen))
        if whole.tokens <= min(hard, self.soft or inf):
            return whole
        whole = self._made(state, seen)
        order = [*memory.least_recently_used(), *memory.thoughts]

        def fits(gone: list[str]) -> bool:
            return self._made(state, seen.without(gone)).tokens <= hard

        moving = order[: _fewest(order, fits)]
        left = seen.without(moving)
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
        return Paged("hard_limit", "lru", prompt.moving, (), *sizes, self.hard)

    def page(
        self, memory: Memory, why: PagingReason, asked: AskedAction | None, reason: str | None
    ) -> Paged:
        """Move memories, as the model asks or by use.

        Args:
            memory: The memory.
            why: Why.
            asked: What the model asks for; None if it was not asked, or is of no use.
            reason: Why it is of no use.
        """
        before = self._thinking(memory)
        out: list[str] = []
        into: list[str] = []
        if asked is not None and asked.type == "page_out":
            out = [tag for tag in _named(asked) if tag in memory.working]
            for tag in out:
                memory.page_out(tag)
        if asked is None or self.has_passed_soft_limit(memory):
            out += self._page_by_use(memory)
        wanted = _named(asked) if asked is not None and asked.type == "page_in" else []
        limit = min(self.soft or inf, self.hard or inf)
        for tag in wanted:
            is_new = tag not in memory.working
            if is_new and self._fits_with(memory, tag, limit) and memory.load(tag):
                into.append(tag)
        by = "lru" if asked is None else "model"
        after = self._thinking(memory)
        return Paged(why, by, tuple(out), tuple(into), before, after, self.soft, reason)

    def problem_of(self, asked: AskedAction | None, memory: Memory) -> str | None:
        """Return why what a model asks for while paging is of no use; None if it is of use."""
        if asked is None:
            return "the reply asks for no action"
        if asked.type not in PAGING_ACTIONS or asked.type not in self.form.config.available_actions:
            return f"{asked.type!r} is not page_out or page_in"
        is_out = asked.type == "page_out"
        if not any(tag in (memory.working if is_out else memory.storage) for tag in _named(asked)):
            return f"there is no memory {asked.tags!r} to move"
        return None

    def _page_by_use(self, memory: Memory) -> list[str]:
        seen = self._seen(memory)
        fixed = self._made("thinking", replace(seen, working={}, thoughts={})).tokens
        limit = fixed + max(0, (self.soft or fixed) - fixed) * _DOWN_TO
        order = [*memory.least_recently_used(), *[*memory.thoughts][:-1]]

        def fits(gone: list[str]) -> bool:
            return self._made("thinking", seen.without(gone)).tokens <= limit

        moved = order[: _fewest(order, fits)]
        for tag in moved:
            memory.page_out(tag)
        return moved

    def _fits_with(self, memory: Memory, tag: str, limit: float) -> bool:
        seen = self._seen(memory)
        more = replace(seen, working={**seen.working, tag: memory.stored(tag)})
        return self._made("thinking", more).tokens <= limit

    def _seen(self, memory: Memory) -> Seen:
        """Return what every prompt shows of a memory, with nothing that may be wanted besides."""
        thoughts = memory.thoughts if self.form.config.thinking_log.enable else {}
        last = "\n".join(filter(None, (memory.own.last_action, memory.own.fault)))
        stored = len(memory.storage)
        own = memory.own
        return Seen(
            memory.working, thoughts, stored, last_action=last, refused=own.refused, news=own.news
        )

    def _thinking(self, memory: Memory) -> int:
        return self._made("thinking", self._seen(memory)).tokens

    def _with_hints(self, memory: Memory, seen: Seen) -> Seen:
        """Return what is seen, with what was found, and names of what may be wanted."""
        # of a tag in working memory, storage may have an older value
        found = {
            tag: to_text(memory.stored(tag))[:_MOST_OF_FOUND]
            for tag in memory.own.found
            if tag in memory.storage and tag not in memory.working
        }
        text = [self.form.config.goal or "", *memory.thoughts.values()][-1]
        matches = memory.search(text, _MOST_NAMED + len(memory.working))
        named = [match.tag for match in matches if match.tag not in memory.working]
        return replace(seen, found=found, named=named[:_MOST_NAMED])


def _fewest(order: list[str], fits: Callable[[list[str]], bool]) -> int:
    """Return how many of the first have to go; all of them if that is not enough."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        if fits(order[:middle]):
            high = middle
        else:
            low = middle + 1
    return low


def _named(asked: AskedAction) -> list[str]:
    parts: Iterable[str] = (as_tag(part).strip("_") for part in asked.tags.split(","))
    return [*dict.fromkeys(filter(None, parts))]
