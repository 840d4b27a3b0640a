"""What moves between working memory and storage, so that a prompt keeps within its limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from prism.cognition._actions import PAGING_TYPES
from prism.cognition._config._config import Config, require_room
from prism.cognition._memory._memory import Memory
from prism.cognition._memory._search import Match
from prism.cognition._memory._values import as_tag
from prism.cognition._prompts import Prompt, build_prompt
from prism.cognition._replies import AskedAction
from prism.statechart.reasoner._tokens import TokenCounter

PagingReason = Literal["soft_limit", "hard_limit", "asked"]
PagedBy = Literal["lru", "model"]

_STATES = ("thinking", "executing", "paging")
_MOST_MATCHES = 10
"""Memories that are looked at to come back."""

_DOWN_TO = 3, 4
_UP_TO = 7, 8
"""Shares of what the soft limit leaves to memory and log: down to the first memories go, up to the
second they come back. The rest is room, so that the next few cycles need no paging."""


@dataclass(frozen=True, slots=True)
class Paged:
    """What moved in a paging.

    Args:
        why: ``soft_limit`` or ``hard_limit`` if that was passed, ``asked`` if a reply named paging
            as the next state.
        by: ``lru`` if the least recently used went, ``model`` if the model decided.
        went: Tags of memories, or keys of thoughts, that went to storage.
        came: Tags of memories that came back.
        kept_older: Of these that went, those under whose tag storage had another value; with each
            the numbered tag under which that is kept.
        tokens_before: Tokens of the prompt before.
        tokens_after: Tokens of the prompt after.
        limit: The limit in tokens; None if there is none.
        reason: Why the model did not decide, where it was asked to, or what it asks for did not
            come.
    """

    why: PagingReason
    by: PagedBy
    went: tuple[str, ...]
    came: tuple[str, ...]
    kept_older: Mapping[str, str]
    tokens_before: int
    tokens_after: int
    limit: int | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt within the hard limit, and what has to go so that it is.

    Args:
        prompt: The prompt without what goes.
        tags: Memories that go, the least recently used first.
        keys: Thoughts that go, the oldest first.
        tokens_before: Tokens of the prompt with them.
    """

    prompt: Prompt
    tags: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    tokens_before: int = 0


@dataclass(slots=True)
class _Moves:
    """What has moved in a paging so far."""

    memory: Memory
    went: list[str] = field(default_factory=list)
    came: list[str] = field(default_factory=list)
    kept_older: dict[str, str] = field(default_factory=dict)

    def page_out(self, tag: str) -> None:
        paged = self.memory.page_out(tag)
        self.went.append(tag)
        if paged.older is not None:
            self.kept_older[tag] = paged.older

    def told(
        self, why: PagingReason, by: PagedBy, before: int, after: int, limit: int | None
    ) -> Paged:
        moved = tuple(self.went), tuple(self.came), self.kept_older
        return Paged(why, by, *moved, before, after, limit)


class Pager:
    """Makes the prompts of one configuration, and keeps them within its limits.

    Args:
        config: The configuration.
        goal: What the agent is to achieve; the configuration's goal by default.
        count: Counts tokens.

    Raises:
        InputError: If what every prompt holds is larger than a limit already.
    """

    def __init__(self, config: Config, goal: str | None, count: TokenCounter) -> None:
        self._config = config
        self._goal = goal
        self._count = count
        soft, hard = config.paging_limit, config.hard_limit
        self.soft: int | None = soft.max_tokens if soft.enable else None
        self.hard: int | None = hard.max_tokens if hard.enable else None
        require_room(config, goal=goal, count=count)
        asked_in = _STATES if config.paging.policy == "model" else _STATES[:2]
        self._largest = max(asked_in, key=lambda state: self._prompt(state, {}, {}).tokens)

    def prompt(self, memory: Memory, state: str) -> Prompt:
        """Return the prompt of a state with all that is in working memory."""
        return self._prompt(state, memory.working, self._shown(memory))

    def has_passed_soft_limit(self, memory: Memory) -> bool:
        """Return whether the thinking prompt is above the soft limit, and anything can go."""
        can_go = bool(memory.working)
        return (
            can_go and self.soft is not None and self.prompt(memory, "thinking").tokens > self.soft
        )

    def has_room_for(self, tag: str, value: Any) -> bool:
        """Return whether a prompt with this memory alone is within the hard limit."""
        if self.hard is None:
            return True

        return self._prompt(self._largest, {tag: value}, {}).tokens <= self.hard

    def fit(self, memory: Memory, state: str) -> Fitted:
        """Return a prompt within the hard limit; the memory stays as it is.

        Args:
            memory: The memory.
            state: State that the prompt is for.
        """
        if state == "paging":
            offer = [match.tag for match in _matches(memory, _MOST_MATCHES)]
            offering = self._prompt(state, memory.working, self._shown(memory), offer)
            if self.hard is None or offering.tokens <= self.hard:
                return Fitted(offering, tokens_before=offering.tokens)

        whole = self.prompt(memory, state)
        if self.hard is None or whole.tokens <= self.hard:
            return Fitted(whole, tokens_before=whole.tokens)

        order = memory.least_recently_used()
        keys = list(self._shown(memory))
        limit = self.hard

        def without(tags: int, thoughts: int) -> Prompt:
            return self._prompt(
                state,
                _without(memory.working, order[:tags]),
                _without(self._shown(memory), keys[:thoughts]),
            )

        tags = _fewest(len(order), lambda number: without(number, 0).tokens <= limit)
        thoughts = _fewest(len(keys), lambda number: without(tags, number).tokens <= limit)

        return Fitted(
            without(tags, thoughts), tuple(order[:tags]), tuple(keys[:thoughts]), whole.tokens
        )

    def make_room(self, memory: Memory, fitted: Fitted) -> Paged | None:
        """Move to storage what has to go; None if nothing has."""
        if not fitted.tags and not fitted.keys:
            return None

        moves = _Moves(memory)
        for tag in (*fitted.tags, *fitted.keys):
            moves.page_out(tag)

        before, after = fitted.tokens_before, fitted.prompt.tokens

        return moves.told("hard_limit", "lru", before, after, self.hard)

    def page(
        self, memory: Memory, why: PagingReason, asked: AskedAction | None, reason: str | None
    ) -> Paged:
        """Move memories, as the policy has it.

        Args:
            memory: The memory.
            why: Why.
            asked: What the model asks for; None if it was not asked, or is of no use.
            reason: Why it is of no use.
        """
        before = self.prompt(memory, "thinking").tokens
        moves = _Moves(memory)
        by: PagedBy = "lru" if asked is None else "model"
        if asked is not None and asked.type == "page_out":
            self._page_out_as_asked(asked, moves)
        # what the model leaves above the limit goes, too, and makes room for what is to come
        if asked is None or self.has_passed_soft_limit(memory):
            self._page_by_use(moves, brings_back=asked is None)
        if asked is not None and asked.type == "page_in":
            reason = self._page_in_as_asked(asked, moves)

        after = self.prompt(memory, "thinking").tokens

        return replace(moves.told(why, by, before, after, self.soft), reason=reason)

    def problem_of(self, asked: AskedAction | None, memory: Memory) -> str | None:
        """Return why what a model asks for while paging is of no use; None if it is of use."""
        if asked is None:
            return "the reply asks for no action"
        if asked.type not in PAGING_TYPES:
            return f"{asked.type!r} is not page_out or page_in"
        if asked.type not in self._config.available_actions:
            return f"{asked.type!r} is not available"

        holder = "working memory" if asked.type == "page_out" else "storage"
        if not _named(asked, memory):
            return f"{holder} has nothing of the name {asked.tags!r}"

        return None

    def _page_out_as_asked(self, asked: AskedAction, moves: _Moves) -> None:
        for tag in _named(asked, moves.memory):
            moves.page_out(tag)

    def _page_in_as_asked(self, asked: AskedAction, moves: _Moves) -> str | None:
        """Bring back what a model asks for; return why not, if a part of it does not come."""
        left_out: list[str] = []
        for tag in _named(asked, moves.memory):
            if self._comes_in(moves.memory, tag, self.soft):
                moves.came.append(tag)
            elif tag not in moves.memory.working:
                left_out.append(tag)

        return f"there is no room for {', '.join(left_out)}" if left_out else None

    def _page_by_use(self, moves: _Moves, *, brings_back: bool) -> None:
        fixed = self._prompt("thinking", {}, {}).tokens
        room = None if self.soft is None else max(0, self.soft - fixed)
        if room is not None:
            low = fixed + room * _DOWN_TO[0] // _DOWN_TO[1]
            for tag in self._least_used(moves.memory, low):
                moves.page_out(tag)

        if brings_back:
            high = None if room is None else fixed + room * _UP_TO[0] // _UP_TO[1]
            self._bring_back(moves, high)

    def _least_used(self, memory: Memory, limit: int) -> list[str]:
        """Return the memories without which the thinking prompt is within a limit."""
        order, thoughts = memory.least_recently_used(), self._shown(memory)

        def fits(number: int) -> bool:
            working = _without(memory.working, order[:number])
            return self._prompt("thinking", working, thoughts).tokens <= limit

        return order[: _fewest(len(order), fits)]

    def _bring_back(self, moves: _Moves, limit: int | None) -> None:
        """Bring back what storage has for the last thought, as far as a limit allows."""
        memory = moves.memory
        gone = {*moves.went, *moves.kept_older.values()}
        found = _matches(memory, _MOST_MATCHES + len(gone))
        others = (match.tag for match in found if match.tag not in gone)
        for tag in islice(others, _MOST_MATCHES):
            if self._comes_in(memory, tag, limit):
                moves.came.append(tag)

    def _comes_in(self, memory: Memory, tag: str, limit: int | None) -> bool:
        """Bring one memory back, if a prompt has room for it."""
        if tag in memory.working:
            return False

        value = memory.stored(tag)
        working = {**memory.working, tag: value}
        tokens = self._prompt("thinking", working, self._shown(memory)).tokens
        most = self.hard if limit is None else limit
        if most is not None and tokens > most:
            return False

        return self.has_room_for(tag, value) and memory.page_in(tag)

    def _shown(self, memory: Memory) -> Mapping[str, str]:
        return memory.thoughts if self._config.thinking_log.enable else {}

    def _prompt(
        self,
        state: str,
        working: Mapping[str, Any],
        thoughts: Mapping[str, str],
        stored: Iterable[str] = (),
    ) -> Prompt:
        return build_prompt(
            self._config,
            state,
            working,
            thoughts,
            stored=stored,
            goal=self._goal,
            count=self._count,
        )


def _matches(memory: Memory, most: int) -> list[Match]:
    """Return what storage has for the last thought, best first, and working memory has not."""
    thoughts = list(memory.thoughts.values())
    if not thoughts:
        return []

    return [match for match in memory.search(thoughts[-1], most) if match.tag not in memory.working]


def _named(asked: AskedAction, memory: Memory) -> list[str]:
    """Return the memories that an action names: one, or several separated by commas."""

    def is_there(tag: str) -> bool:
        if asked.type == "page_out":
            return tag in memory.working
        return memory.stored(tag) is not None

    whole = as_tag(asked.tags)
    if whole and is_there(whole):
        return [whole]

    # spaces around a comma have become underscores, with which a tag may begin as well
    parts = (
        form
        for part in asked.tags.split(",")
        for form in (part, part.removeprefix("_"), part.strip("_"))
    )

    return [tag for tag in dict.fromkeys(map(as_tag, parts)) if tag and is_there(tag)]


def _without(items: Mapping[str, Any], left_out: Collection[str]) -> dict[str, Any]:
    gone = frozenset(left_out)
    return {key: value for key, value in items.items() if key not in gone}


def _fewest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the smallest number that fits, or the largest if none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1

    return low
