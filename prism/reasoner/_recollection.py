"""What an agent remembers when it decides, within a limit of tokens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.errors import FieldValueError
from prism.reasoner._tokens import TokenCounter, count_tokens
from prism.reasoner._words import in_words, one_line
from prism.statechart.names import identify
from prism.statechart.states import state_text

DEFAULT_TOKENS = 400

_HEADING = "What you remember, oldest first:"
_CUT = "- (earlier things are left out)"
_ELLIPSIS = " [...]"


@dataclass(frozen=True, slots=True)
class Recollection:
    """The memory of an agent in a model's prompt: the last things that happened to it.

    In the social feed, these are the posts that it saw, its reactions, and what it wrote; in a
    world, its notes (`prism.worlds.Agent.remember`), its messages and its transitions; for any
    other agent, the transitions in its ``state_history``. If not all fit, the newest are kept, and
    the prompt says that earlier ones are left out.

    Args:
        last: Maximum number of things to include; the agent itself keeps 50 transitions by default.
        tokens: Maximum number of tokens, including the heading.
        count: Returns the tokens of a text; by default one for four bytes.

    Raises:
        FieldValueError: If one of the two is not a whole number from 1 on, or there is no room for
            the heading.
    """

    last: int = 5
    tokens: int = DEFAULT_TOKENS
    count: TokenCounter = count_tokens

    def __post_init__(self) -> None:
        """Refuse limits that leave nothing to remember."""
        for name in ("last", "tokens"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise FieldValueError(f"{name} must be a whole number, 1 or more, got {value!r}")

        least = self.count(_memory([_ELLIPSIS], is_cut=True))
        if self.tokens < least:
            raise FieldValueError(f"tokens must be at least {least}, got {self.tokens}")

    def tell(self, things: Sequence[str]) -> str:
        """Return the memory as a part of a prompt; empty if there is nothing.

        Args:
            things: What happened, oldest first; one more than ``last`` reveals that there are more.
        """
        lines = [*map(one_line, things)]
        for number in range(min(self.last, len(lines)), 0, -1):
            text = _memory(lines[-number:], is_cut=number < len(lines))
            if self.count(text) <= self.tokens:
                return text

        return self._shortened(lines[-1], is_cut=len(lines) > 1) if lines else ""

    def _shortened(self, line: str, *, is_cut: bool) -> str:
        """Return the beginning of the newest thing, if even that does not fit."""

        def is_too_long(length: int) -> bool:
            text = _memory([line[:length].rstrip() + _ELLIPSIS], is_cut=is_cut)
            return self.count(text) > self.tokens

        length = bisect_left(range(len(line)), True, key=lambda length: is_too_long(length + 1))
        return _memory([line[:length].rstrip() + _ELLIPSIS], is_cut=is_cut)


def recollection_of(memory: Recollection | int | None) -> Recollection | None:
    """Return the memory of a `Reasoner`; a number is a number of things.

    Raises:
        FieldValueError: If it is neither.
    """
    if memory is None or isinstance(memory, Recollection):
        return memory
    if not isinstance(memory, int):
        raise FieldValueError(f"memory must be a Recollection or a whole number, got {memory!r}")

    return Recollection(memory)


def transition_in_words(record: Any) -> str:
    """Return an entry of an agent's history in words."""
    source, target = state_text(record.from_state), state_text(record.to_state)
    return f'You went from "{source}" to "{target}" on "{record.trigger}"{_about(record.context)}.'


def stay_in_words(state: Any, trigger: str, context: Any) -> str:
    """Return a decision to stay in words, since the history has no entry for it."""
    return f'You stayed in "{state_text(state)}" on "{trigger}"{_about(identify(context))}.'


def _about(context: Mapping[str, Any] | None) -> str:
    return f" ({in_words(context)})" if context else ""


def things_in_history(agent: Any, most: int) -> list[str]:
    """Return the last transitions of an agent that keeps a history, oldest first."""
    history: Iterable[Any] = getattr(agent, "state_history", None) or ()
    return [transition_in_words(record) for record in list(history)[-most:]]


def _memory(lines: Iterable[str], *, is_cut: bool) -> str:
    return "\n".join((_HEADING, *[_CUT] * is_cut, *(f"- {line}" for line in lines)))
