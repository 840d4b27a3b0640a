"""Moves between working memory and storage that keep a prompt within its limits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, Literal

from prism.cognition._actions import OwnAction, tag_in
from prism.cognition._config import Config, crowded_limits
from prism.cognition._memory._contents import STATES
from prism.cognition._memory._memory import Memory
from prism.cognition._memory._values import MISSING, as_tag, to_text
from prism.cognition._prompts import LEAST, Prompt, Seen, build_prompt, without
from prism.cognition._replies import AskedAction
from prism.cognition._settings import PAGING_ACTIONS
from prism.errors import InputError
from prism.reasoner._tokens import TokenCounter

PagingReason = Literal["soft_limit", "hard_limit", "asked"]
PagedBy = Literal["lru", "model"]

_MOST_MATCHES = 10
"""Memories that are looked at to come back."""

_DOWN_TO = 3 / 4
_UP_TO = 7 / 8
_THOUGHTS_TO = 1 / 2
"""Shares of what the soft limit leaves to memory and log: down to the first memories go, up to the
second they come back, so that the next few cycles need no paging. Where the log alone has more than
the first, it goes down to the third, or each new memory would have to go at once."""

_LEAST_THOUGHT = 160
"""Characters of a thought that is not shortened any more."""

_LONGEST_NEWS = 300
"""Characters of the last news that are shown where a prompt has no room for all of them."""

_MOST_FOUND_LETTERS = 600
"""Characters that are shown of a memory that a search found."""


@dataclass(frozen=True, slots=True)
class Paged:
    """The moves of a paging.

    Args:
        why: ``soft_limit`` or ``hard_limit`` if that limit was passed, ``asked`` if a reply named
            paging as the next state.
        by: ``lru`` if the least recently used memories moved, ``model`` if the model decided.
        moved_out: Tags of memories, or keys of thoughts, that moved to storage.
        moved_in: Tags of memories that came back.
        shortened: Keys of thoughts that moved to storage, leaving their beginning behind.
        versions: The moved tags whose older value is kept in storage as a version.
        tokens_before: Tokens of the prompt before.
        tokens_after: Tokens of the prompt after.
        limit: The limit in tokens; None if there is none.
        reason: Why the model did not decide although it was asked, or why a requested memory did
            not come.
    """

    why: PagingReason
    by: PagedBy
    moved_out: tuple[str, ...]
    moved_in: tuple[str, ...]
    shortened: tuple[str, ...]
    versions: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    limit: int | None
    reason: str | None = None


@dataclass(slots=True)
class _Moves:
    """The moves of a paging so far."""

    memory: Memory
    moved_out: list[str] = field(default_factory=list)
    moved_in: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    def page_out(self, tags: Iterable[str]) -> None:
        for tag in tags:
            if self.memory.page_out(tag):
                self.versions.append(tag)
            self.moved_out.append(tag)

    def shorten(self, key: str, length: int) -> None:
        self.memory.shorten(key, length)
        self.shortened.append(key)

    def told(self, why: PagingReason, by: PagedBy, *sizes: int | None, **more: Any) -> Paged:
        moves = (self.moved_out, self.moved_in, self.shortened, self.versions)
        told: Any = (*map(tuple, moves), *sizes)
        return Paged(why, by, *told, **more)


class Pager:
    """Makes the prompts of one configuration, and keeps them within its limits.

    Args:
        config: The configuration.
        count: Counts tokens.
        own: Actions of the application, by name.

    Raises:
        InputError: If the fixed parts of every prompt already exceed a limit.

    Attributes:
        soft: The soft limit in tokens; None if there is none.
        hard: The hard limit.
    """

    def __init__(
        self, config: Config, count: TokenCounter, own: Mapping[str, OwnAction] | None = None
    ) -> None:
        self._config = config
        self._count = count
        self._prompt = partial(build_prompt, config, count=count, own=own)
        soft, hard = config.paging_limit, config.hard_limit
        self.soft: int | None = soft.max_tokens if soft.enable else None
        self.hard: int | None = hard.max_tokens if hard.enable else None
        self._soft: float = inf if self.soft is None else self.soft
        self._hard: float = inf if self.hard is None else self.hard
        for limit, message in crowded_limits(config, count=count, own=own):
            raise InputError(message, field=f"{limit}.max_tokens")

        # by use, nobody is asked in the state paging
        asked_in = STATES if config.paging.policy == "model" else STATES[:2]
        self._largest = max(asked_in, key=lambda state: self._prompt(state, LEAST).tokens)

    def tokens_of_memory(self, memory: Memory) -> int:
        """Return how many tokens of a prompt are working memory."""
        return self._count("\n".join(f"{tag} {to_text(v)}" for tag, v in memory.working.items()))

    def has_passed_soft_limit(self, memory: Memory) -> bool:
        """Return whether the thinking prompt is above the soft limit, and anything can move."""
        seen = self._seen(memory)
        if self.soft is None or self._thinking(seen) <= self.soft:
            return False

        return bool(memory.working) or self._long_log(seen) != ([], None)

    def has_room_for(self, tag: str, value: Any) -> bool:
        """Return whether a prompt with this memory alone is within the hard limit."""
        last = {"cycle": 10**6, "state": "executing", "type": "working_memory_remove", "tags": tag}
        alone = replace(LEAST, working={tag: value}, last_action=last)
        return self._prompt(self._largest, alone).tokens <= self._hard

    def fit(self, memory: Memory, state: str) -> Prompt:
        """Return a prompt within the hard limit; the memory stays as it is.

        Args:
            memory: The memory.
            state: State that the prompt is for.
        """
        seen, hard = self._seen(memory), self._hard
        whole = self._prompt(state, seen)
        if whole.tokens <= hard:
            return self._with_hints(memory, state, seen, whole)

        # of a log that alone is too long the oldest thoughts go first, else memories
        limit = min(hard, self._soft)
        first = self._surplus_thoughts(seen, limit, limit)
        order = [("thoughts", key) for key in seen.thoughts]
        order[first:first] = [("working", tag) for tag in memory.least_recently_used()]
        moving = _going(seen, order, lambda it: self._prompt(state, it).tokens <= hard, first)
        left = without(seen, moving)
        # of what is said of the last cycles, nothing is as large but by far
        brief = [f"{each[:_LONGEST_NEWS]} …" for each in left.news[-1:]]
        for shorter in ({"last_action": None}, {"news": brief}, {"news": ()}):
            if self._prompt(state, left).tokens > hard:
                left = replace(left, **shorter)

        tags = tuple(key for _, key in moving)
        return replace(self._prompt(state, left), moving=tags, tokens_before=whole.tokens)

    def make_room(self, memory: Memory, prompt: Prompt) -> Paged | None:
        """Move to storage what has to move; None if nothing has."""
        if not prompt.moving:
            return None

        moves = _Moves(memory)
        moves.page_out(prompt.moving)
        return moves.told("hard_limit", "lru", prompt.tokens_before, prompt.tokens, self.hard)

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
        before = self._thinking(self._seen(memory))
        moves = _Moves(memory)
        if asked is not None and asked.type == "page_out":
            moves.page_out(_named(asked, memory))
        # what the model leaves above the limit goes, too, and makes room for what is to come
        if asked is None or self.has_passed_soft_limit(memory):
            self._page_by_use(moves, brings_back=asked is None)
        if asked is not None and asked.type == "page_in":
            reason = self._page_in_as_asked(asked, moves)

        by: PagedBy = "lru" if asked is None else "model"
        after = self._thinking(self._seen_after(moves))
        return moves.told(why, by, before, after, self.soft, reason=reason)

    def problem_of(self, asked: AskedAction | None, memory: Memory) -> str | None:
        """Return why what a model asks for while paging is of no use; None if it is of use."""
        if asked is None:
            return "the reply asks for no action"
        if asked.type not in PAGING_ACTIONS:
            return f"{asked.type!r} is not page_out or page_in"
        if asked.type not in self._config.available_actions:
            return f"{asked.type!r} is not available"
        if not _named(asked, memory):
            holder = "working memory" if asked.type == "page_out" else "storage"
            return f"{holder} has nothing of the name {asked.tags!r}"

        return None

    # What a prompt shows

    def _seen(self, memory: Memory) -> Seen:
        """Return what every prompt shows of a memory, with nothing that may be wanted besides."""
        seen = Seen.of(memory)
        return seen if self._config.thinking_log.enable else replace(seen, thoughts={})

    def _seen_after(self, moves: _Moves, out: Sequence[str] = (), into: Sequence[str] = ()) -> Seen:
        """Return what the next prompt shows, which says what has moved and what is to move."""
        moved = {"moved_out": [*moves.moved_out, *out], "moved_in": [*moves.moved_in, *into]}
        last = {**(moves.memory.last_action or {}), **moved}
        return replace(self._seen(moves.memory), last_action=last)

    def _thinking(self, seen: Seen) -> int:
        """Return how many tokens the thinking prompt has."""
        return self._prompt("thinking", seen).tokens

    def _with_hints(self, memory: Memory, state: str, seen: Seen, whole: Prompt) -> Prompt:
        """Return a prompt that shows what was found, and names what may be wanted, where it fits.

        For it no memory has to move: it keeps below the soft limit, or else below the hard one.
        """
        found = _found_last(memory)
        named = dict.fromkeys(
            _matching(memory, self._config.storage.named, self._config.goal or "")
        )
        hinted, hints = replace(seen, found=found, named=named), [*(found | named)]
        if not hints:
            return whole

        def without_last(number: int) -> Prompt:
            last = hints[len(hints) - number :]
            gone = [(part, tag) for tag in last for part in ("found", "named")]
            return self._prompt(state, without(hinted, gone))

        limit = min(limit for limit in (self._soft, self._hard) if whole.tokens <= limit)
        if (shown := without_last(0)).tokens <= limit:  # as nearly always
            return shown
        return without_last(_fewest(len(hints), lambda n: without_last(n).tokens <= limit))

    # What moves by use

    def _page_by_use(self, moves: _Moves, *, brings_back: bool) -> None:
        memory = moves.memory
        keys, length = self._long_log(self._seen(memory))
        moves.page_out(keys)
        if length is not None:
            moves.shorten([*memory.thoughts][-1], length)

        fixed = self._thinking(replace(self._seen(memory), working={}, thoughts={}))
        moves.page_out(self._least_used(moves, _share(_DOWN_TO, fixed, self._soft)))
        if brings_back:
            # what has just gone would come back at once: the last thought may name it
            gone = {*moves.moved_out, *map(as_tag, moves.shortened)}
            matching = _matching(memory, _MOST_MATCHES + len(gone))
            for tag in [tag for tag in matching if tag not in gone][:_MOST_MATCHES]:
                self._bring_back(moves, tag, _share(_UP_TO, fixed, self._soft))

    def _long_log(self, seen: Seen) -> tuple[list[str], int | None]:
        """Return how a log makes room that alone leaves new memories none below the soft limit.

        Returns:
            The oldest thoughts, which move to storage, and how many characters stay of the last
            one; None for all of them.
        """
        log, keys = replace(seen, working={}), list(seen.thoughts)
        fixed = self._thinking(replace(log, thoughts={}))
        most = _share(_DOWN_TO, fixed, self._soft)
        if self._soft <= fixed or not keys or self._thinking(log) <= most:
            return [], None

        moving = keys[: self._surplus_thoughts(seen, self._soft, most)]
        limit = _share(_THOUGHTS_TO, fixed, self._soft)
        last, text = keys[-1], log.thoughts[keys[-1]]

        def fits(dropped: int) -> bool:
            shown = {last: text[: len(text) - dropped]}
            return self._thinking(replace(log, thoughts=shown)) <= limit

        if len(moving) < len(keys) - 1 or fits(0) or len(text) <= _LEAST_THOUGHT:
            return moving, None

        return moving, max(_LEAST_THOUGHT // 2, len(text) - _fewest(len(text), fits))

    def _surplus_thoughts(self, seen: Seen, limit: float, most: float) -> int:
        """Return how many of the oldest thoughts go from a log that alone has more than it may.

        Args:
            seen: What is seen.
            limit: The limit of a prompt, to a share of which the log goes down.
            most: How many tokens it may have; the last thought stays in any case.
        """
        log = replace(seen, working={})
        if self._thinking(log) <= most:
            return 0

        share = _share(_THOUGHTS_TO, self._thinking(replace(log, thoughts={})), limit)
        order = [("thoughts", key) for key in log.thoughts][:-1]
        return len(_going(log, order, lambda it: self._thinking(it) <= share))

    def _least_used(self, moves: _Moves, limit: float) -> list[str]:
        """Return the memories without which the thinking prompt is within a limit."""
        order = moves.memory.least_recently_used()

        def fits(number: int) -> bool:
            seen = self._seen_after(moves, out=order[:number])
            gone = [("working", tag) for tag in order[:number]]
            return self._thinking(without(seen, gone)) <= limit

        return order[: _fewest(len(order), fits)]

    # What comes back

    def _page_in_as_asked(self, asked: AskedAction, moves: _Moves) -> str | None:
        """Bring back what a model asks for; return why not, if a part of it does not come."""
        for tag in (tags := _named(asked, moves.memory)):
            self._bring_back(moves, tag, self._soft)

        there = {*moves.memory.working, *moves.moved_in}
        left_out = [tag for tag in tags if tag not in there]
        return f"there is no room for {', '.join(left_out)}" if left_out else None

    def _bring_back(self, moves: _Moves, tag: str, limit: float) -> None:
        """Bring one memory back, if a prompt has room for it below a limit and the hard one."""
        memory, log = moves.memory, self._config.thinking_log
        value, seen = memory.stored(tag), self._seen_after(moves, into=[tag])
        has_place = log.enable and len(seen.thoughts) < log.max_entries
        as_thought = has_place and memory.is_missing_thought(tag)
        part = "thoughts" if as_thought else "working"
        more: Any = {part: {**getattr(seen, part), tag: value}}
        fits = self._thinking(replace(seen, **more)) <= min(limit, self._hard)
        is_small = fits and self.has_room_for(tag, value)
        if is_small and memory.page_in(tag, as_thought=as_thought):
            moves.moved_in.append(tag)


def _fewest(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the smallest number that fits, or the largest if none does."""
    return bisect_left(range(limit), True, key=fits)


def _going(
    seen: Seen, order: Sequence[tuple[str, str]], fits: Callable[[Seen], bool], least: int = 0
) -> Sequence[tuple[str, str]]:
    """Return as few as can be of what goes first, without which what is seen fits."""
    rest = order[least:]
    left = _fewest(len(rest), lambda number: fits(without(seen, order[: least + number])))
    return order[: least + left]


def _share(share: float, fixed: int, limit: float) -> float:
    """Return a size between that of the fixed part of a prompt and a limit."""
    return fixed + max(0, limit - fixed) * share


def _found_last(memory: Memory) -> dict[str, str]:
    """Return the beginnings of what the last action found, by tag, as far as it is still there."""
    return {
        tag: to_text(value)[:_MOST_FOUND_LETTERS]
        for tag in (memory.last_action or {}).get("found", ())
        if (value := memory.stored(tag)) is not None
    }


def _matching(memory: Memory, limit: int, instead: str | None = None) -> list[str]:
    """Return tags of what storage has for the last thought, best first, and is not seen as it is.

    Args:
        memory: The memory.
        limit: Maximum number of matches.
        instead: What to search for where there is no thought.
    """
    text = [*memory.thoughts.values(), *([] if memory.thoughts else [instead])][-1]
    # a thought has many words: as they stand, they tell more than in all their forms
    thoughts, number = memory.thoughts, limit + len(memory.working) + len(memory.thoughts)
    found = memory.search(text, number, plurals=False) if text else []
    unseen = (match for match in found if match.value != thoughts.get(match.tag, MISSING))
    return [match.tag for match in unseen if match.tag not in memory.working][:limit]


def _named(asked: AskedAction, memory: Memory) -> list[str]:
    """Return the memories that an action names: one, or several separated by commas."""
    # spaces around a comma have become underscores, with which a tag may begin as well
    parts = [
        form
        for part in asked.tags.split(",")
        for form in (part, part.removeprefix("_"), part.strip("_"))
    ]
    whole, *named = (
        tag_in(memory, tag, is_stored=asked.type != "page_out") if tag else None
        for tag in map(as_tag, (asked.tags, *parts))
    )

    return [whole] if whole else [*dict.fromkeys(filter(None, named))]
