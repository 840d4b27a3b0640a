"""What moves between working memory and storage, so that a prompt keeps within its limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from prism.cognition._config._config import Config, require_room
from prism.cognition._config._values import PAGING_ACTIONS
from prism.cognition._memory._memory import Memory
from prism.cognition._memory._values import as_tag, to_text
from prism.cognition._prompts import LEAST, Prompt, Seen, build_prompt
from prism.cognition._replies import AskedAction
from prism.statechart.reasoner._tokens import TokenCounter

PagingReason = Literal["soft_limit", "hard_limit", "asked"]
PagedBy = Literal["lru", "model"]

_STATES = ("thinking", "executing", "paging")
_MOST_MATCHES = 10
"""Memories that are looked at to come back."""

_DOWN_TO = 3, 4
_UP_TO = 7, 8
_THOUGHTS_TO = 1, 2
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
    """What moved in a paging.

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


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt within the hard limit, and what has to move so that it is.

    Args:
        prompt: The prompt without what moves.
        moving: Thoughts and memories that move to storage, in this order.
        tokens_before: Tokens of the prompt with them.
    """

    prompt: Prompt
    moving: tuple[str, ...] = ()
    tokens_before: int = 0


@dataclass(slots=True)
class _Moves:
    """What has moved in a paging so far."""

    memory: Memory
    moved_out: list[str] = field(default_factory=list)
    moved_in: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    def page_out(self, tag: str) -> None:
        if self.memory.page_out(tag):
            self.versions.append(tag)
        self.moved_out.append(tag)

    def told(
        self, why: PagingReason, by: PagedBy, before: int, after: int, limit: int | None
    ) -> Paged:
        moved = tuple(self.moved_out), tuple(self.moved_in)
        left = tuple(self.shortened), tuple(self.versions)
        return Paged(why, by, *moved, *left, before, after, limit)


class Pager:
    """Makes the prompts of one configuration, and keeps them within its limits.

    Args:
        config: The configuration.
        goal: What the agent is to achieve; the configuration's goal by default.
        count: Counts tokens.
        own: Actions of the application, and what a prompt says of each.

    Raises:
        InputError: If the fixed parts of every prompt already exceed a limit.
    """

    def __init__(
        self,
        config: Config,
        goal: str | None,
        count: TokenCounter,
        own: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._goal = goal
        self._count = count
        self._own = own or {}
        soft, hard = config.paging_limit, config.hard_limit
        self.soft: int | None = soft.max_tokens if soft.enable else None
        self.hard: int | None = hard.max_tokens if hard.enable else None
        require_room(config, goal=goal, count=count, own=own)
        # by use, nobody is asked in the state paging
        asked_in = _STATES if config.paging.policy == "model" else _STATES[:2]
        self._largest = max(asked_in, key=lambda state: self._prompt(state, LEAST).tokens)

    def seen(self, memory: Memory) -> Seen:
        """Return what every prompt shows of a memory, with nothing that may be wanted besides."""
        return Seen(
            working=memory.working,
            outdated=memory.outdated,
            thoughts=memory.thoughts if self._config.thinking_log.enable else {},
            stored=memory.stored_count,
            last_action=memory.last_action,
            news=memory.news,
        )

    def prompt(self, memory: Memory, state: str) -> Prompt:
        """Return the prompt of a state with all that is in working memory."""
        return self._prompt(state, self.seen(memory))

    def tokens_of_memory(self, memory: Memory) -> int:
        """Return how many tokens of a prompt are working memory."""
        return self._count("\n".join(f"{tag} {to_text(v)}" for tag, v in memory.working.items()))

    def has_passed_soft_limit(self, memory: Memory) -> bool:
        """Return whether the thinking prompt is above the soft limit, and anything can move."""
        if self.soft is None or self.prompt(memory, "thinking").tokens <= self.soft:
            return False

        return bool(memory.working) or self._long_log(memory) != ([], None)

    def has_room_for(self, tag: str, value: Any) -> bool:
        """Return whether a prompt with this memory alone is within the hard limit."""
        if self.hard is None:
            return True

        last = {"cycle": 10**6, "state": "executing", "type": "working_memory_remove", "tags": tag}
        alone = replace(LEAST, working={tag: value}, last_action=last)
        return self._prompt(self._largest, alone).tokens <= self.hard

    def fit(self, memory: Memory, state: str) -> Fitted:
        """Return a prompt within the hard limit; the memory stays as it is.

        Args:
            memory: The memory.
            state: State that the prompt is for.
        """
        seen = self.seen(memory)
        whole = self._prompt(state, seen)
        if self.hard is None or whole.tokens <= self.hard:
            return Fitted(self._with_hints(memory, state, seen, whole), tokens_before=whole.tokens)

        limit = self.hard
        order, keys = memory.least_recently_used(), list(seen.thoughts)

        def without(thoughts: int, tags: int) -> Seen:
            return replace(
                seen,
                working=_without(seen.working, order[:tags]),
                thoughts=_without(seen.thoughts, keys[:thoughts]),
            )

        def fits(one: Seen) -> bool:
            return self._prompt(state, one).tokens <= limit

        # of a log that alone is too long the oldest thoughts go first, else memories
        first = self._surplus_thoughts(seen, limit)
        tags = _fewest(len(order), lambda number: fits(without(first, number)))
        thoughts = first + _fewest(
            len(keys) - first, lambda number: fits(without(first + number, tags))
        )
        left = without(thoughts, tags)
        if not fits(left):
            # of what is said of the last cycles, nothing is as large but by far
            left = replace(left, last_action=None)
            brief = [f"{each[:_LONGEST_NEWS]} …" for each in left.news[-1:]]
            left = left if fits(left) else replace(left, news=brief)
            left = left if fits(left) else replace(left, news=())

        moving = (*keys[:first], *order[:tags], *keys[first:thoughts])
        return Fitted(self._prompt(state, left), moving, whole.tokens)

    def make_room(self, memory: Memory, fitted: Fitted) -> Paged | None:
        """Move to storage what has to move; None if nothing has."""
        if not fitted.moving:
            return None

        moves = _Moves(memory)
        for tag in fitted.moving:
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
            for tag in _named(asked, memory):
                moves.page_out(tag)
        # what the model leaves above the limit goes, too, and makes room for what is to come
        if asked is None or self.has_passed_soft_limit(memory):
            self._page_by_use(moves, brings_back=asked is None)
        if asked is not None and asked.type == "page_in":
            reason = self._page_in_as_asked(asked, moves)

        after = self._prompt("thinking", self._seen_after(moves)).tokens

        return replace(moves.told(why, by, before, after, self.soft), reason=reason)

    def problem_of(self, asked: AskedAction | None, memory: Memory) -> str | None:
        """Return why what a model asks for while paging is of no use; None if it is of use."""
        if asked is None:
            return "the reply asks for no action"
        if asked.type not in PAGING_ACTIONS:
            return f"{asked.type!r} is not page_out or page_in"
        if asked.type not in self._config.available_actions:
            return f"{asked.type!r} is not available"

        holder = "working memory" if asked.type == "page_out" else "storage"
        if not _named(asked, memory):
            return f"{holder} has nothing of the name {asked.tags!r}"

        return None

    def _page_in_as_asked(self, asked: AskedAction, moves: _Moves) -> str | None:
        """Bring back what a model asks for; return why not, if a part of it does not come."""
        left_out: list[str] = []
        for tag in _named(asked, moves.memory):
            if self._comes_in(moves, tag, self.soft):
                moves.moved_in.append(tag)
            elif tag not in moves.memory.working:
                left_out.append(tag)

        return f"there is no room for {', '.join(left_out)}" if left_out else None

    def _page_by_use(self, moves: _Moves, *, brings_back: bool) -> None:
        memory, fixed = moves.memory, self._prompt("thinking", self._alone(moves.memory)).tokens
        room = None if self.soft is None else max(0, self.soft - fixed)
        if room is not None:
            keys, length = self._long_log(memory)
            for key in keys:
                moves.page_out(key)
            if length is not None:
                last = [*memory.thoughts][-1]
                memory.shorten(last, length)
                moves.shortened.append(last)
            for tag in self._least_used(moves, fixed + _share(room, _DOWN_TO)):
                moves.page_out(tag)

        if brings_back:
            self._bring_back(moves, None if room is None else fixed + _share(room, _UP_TO))

    def _alone(self, memory: Memory) -> Seen:
        """Return what a prompt shows besides memories and thoughts."""
        return replace(self.seen(memory), working={}, thoughts={})

    def _long_log(self, memory: Memory) -> tuple[list[str], int | None]:
        """Return how a log makes room that alone leaves new memories none below the soft limit.

        Returns:
            The oldest thoughts, which move to storage, and how many characters stay of the last
            one; None for all of them.
        """
        log = replace(self.seen(memory), working={})
        fixed = self._prompt("thinking", replace(log, thoughts={})).tokens
        room = (self.soft or 0) - fixed
        if self.soft is None or room <= 0 or not log.thoughts:
            return [], None
        if self._prompt("thinking", log).tokens <= fixed + _share(room, _DOWN_TO):
            return [], None

        limit = fixed + _share(room, _THOUGHTS_TO)
        keys = list(log.thoughts)
        moving = keys[: self._oldest(log, keys, limit)]
        last, text = keys[-1], log.thoughts[keys[-1]]

        def fits(dropped: int) -> bool:
            shown = {last: text[: len(text) - dropped]}
            return self._prompt("thinking", replace(log, thoughts=shown)).tokens <= limit

        if len(moving) < len(keys) - 1 or fits(0) or len(text) <= _LEAST_THOUGHT:
            return moving, None

        return moving, max(_LEAST_THOUGHT // 2, len(text) - _fewest(len(text), fits))

    def _surplus_thoughts(self, seen: Seen, limit: int) -> int:
        """Return how many of the oldest thoughts a log has too many that alone passes a limit."""
        limit = min(limit, self.soft or limit)
        keys, log = list(seen.thoughts), replace(seen, working={})
        if self._prompt("thinking", log).tokens <= limit:
            return 0

        fixed = self._prompt("thinking", replace(log, thoughts={})).tokens
        return self._oldest(log, keys, fixed + _share(max(0, limit - fixed), _THOUGHTS_TO))

    def _oldest(self, log: Seen, keys: list[str], limit: int) -> int:
        """Return how many of the oldest thoughts have to go for a limit; the last one stays."""

        def fits(number: int) -> bool:
            shown = _without(log.thoughts, keys[:number])
            return self._prompt("thinking", replace(log, thoughts=shown)).tokens <= limit

        return _fewest(max(0, len(keys) - 1), fits)

    def _seen_after(
        self, moves: _Moves, *, moved_out: Sequence[str] = (), moved_in: Sequence[str] = ()
    ) -> Seen:
        """Return what the next prompt shows, which says what has moved."""
        last = {
            **(moves.memory.last_action or {}),
            "moved_out": [*moves.moved_out, *moved_out],
            "moved_in": [*moves.moved_in, *moved_in],
        }
        return replace(self.seen(moves.memory), last_action=last)

    def _least_used(self, moves: _Moves, limit: int) -> list[str]:
        """Return the memories without which the thinking prompt is within a limit."""
        order = moves.memory.least_recently_used()

        def fits(number: int) -> bool:
            seen = self._seen_after(moves, moved_out=order[:number])
            shown = replace(seen, working=_without(seen.working, order[:number]))
            return self._prompt("thinking", shown).tokens <= limit

        return order[: _fewest(len(order), fits)]

    def _bring_back(self, moves: _Moves, limit: int | None) -> None:
        """Bring back what storage has for the last thought, as far as a limit allows."""
        memory = moves.memory
        # what has just gone would come back at once: the last thought may name it
        gone = {*moves.moved_out, *map(as_tag, moves.shortened)}
        others = (tag for tag in _matching(memory, _MOST_MATCHES + len(gone)) if tag not in gone)
        for tag in islice(others, _MOST_MATCHES):
            if self._comes_in(moves, tag, limit):
                moves.moved_in.append(tag)

    def _comes_in(self, moves: _Moves, tag: str, limit: int | None) -> bool:
        """Bring one memory back, if a prompt has room for it."""
        memory = moves.memory
        if tag in memory.working:
            return False

        value = memory.stored(tag)
        seen = self._seen_after(moves, moved_in=[tag])
        shown = replace(seen, working={**seen.working, tag: value})
        tokens = self._prompt("thinking", shown).tokens
        bound = self.hard if limit is None else limit
        if bound is not None and tokens > bound:
            return False

        return self.has_room_for(tag, value) and memory.page_in(tag)

    def _with_hints(self, memory: Memory, state: str, seen: Seen, whole: Prompt) -> Prompt:
        """Return a prompt that shows what was found, and names what may be wanted, where it fits.

        For it no memory has to move: it keeps below the soft limit, or else below the hard one.
        """
        found = _found_last(memory)
        named = _matching(memory, self._config.storage.named, self._goal_text())
        hints = [*found, *(tag for tag in named if tag not in found)]
        if not hints:
            return whole

        def without_last(number: int) -> Prompt:
            shown = hints[: len(hints) - number]
            of_found = {tag: text for tag, text in found.items() if tag in shown}
            of_named = [tag for tag in named if tag in shown]
            return self._prompt(state, replace(seen, found=of_found, named=of_named))

        limits = (limit for limit in (self.soft, self.hard) if limit is not None)
        bound = next((limit for limit in limits if whole.tokens <= limit), None)
        if bound is None:
            return without_last(0)
        dropped = _fewest(len(hints), lambda number: without_last(number).tokens <= bound)
        return without_last(dropped)

    def _goal_text(self) -> str:
        return (self._config.goal if self._goal is None else self._goal) or ""

    def _prompt(self, state: str, seen: Seen) -> Prompt:
        return build_prompt(
            self._config, state, seen, goal=self._goal, count=self._count, own=self._own
        )


def _share(room: int, share: tuple[int, int]) -> int:
    return room * share[0] // share[1]


def _found_last(memory: Memory) -> dict[str, str]:
    """Return the beginnings of what the last action found, by tag, as far as it is still there."""
    tags = (memory.last_action or {}).get("found", ())
    values = {tag: memory.stored(tag) for tag in tags}
    return {
        tag: to_text(value)[:_MOST_FOUND_LETTERS]
        for tag, value in values.items()
        if value is not None
    }


def _matching(memory: Memory, limit: int, instead: str = "") -> list[str]:
    """Return tags of what storage has for the last thought, best first, and is not seen yet.

    Args:
        memory: The memory.
        limit: Maximum number of matches.
        instead: What to search for where there is no thought.
    """
    text = [*memory.thoughts.values(), *([] if memory.thoughts else [instead])][-1]
    found = memory.search(text, limit + len(memory.working)) if text else []
    return [match.tag for match in found if match.tag not in memory.working][:limit]


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


def _fewest(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the smallest number that fits, or the largest if none does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1

    return low
