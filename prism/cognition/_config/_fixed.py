"""Whether the part of a prompt that never changes leaves room for a memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prism.cognition._config._values import STATE_DESCRIPTION, Limit
from prism.cognition._prompts import PromptTexts, build_prompt
from prism.errors import InputError
from prism.statechart.reasoner._tokens import TokenCounter, count_tokens


class LimitedTexts(PromptTexts, Protocol):
    """What limits are held against."""

    @property
    def paging_limit(self) -> Limit:
        """The size of a prompt above which the agent pages."""

    @property
    def hard_limit(self) -> Limit:
        """The size that no prompt exceeds."""


def crowded_limits(
    config: LimitedTexts, *, goal: str | None = None, count: TokenCounter = count_tokens
) -> Iterator[tuple[str, str]]:
    """Yield each limit that the fixed part of a prompt passes, and a message.

    Args:
        config: The configuration.
        goal: The goal; the configuration's own by default.
        count: Counts tokens.
    """
    for state in STATE_DESCRIPTION:
        tokens = build_prompt(config, state, {}, {}, goal=goal, count=count).tokens
        if config.hard_limit.enable and tokens > config.hard_limit.max_tokens:
            yield "hard_limit", _told("the hard limit", state, tokens, config.hard_limit)

        # beyond it the agent would page for ever: nothing that can go makes the prompt small enough
        is_thinking = state == "thinking" and config.paging_limit.enable
        if is_thinking and tokens > config.paging_limit.max_tokens:
            yield "paging_limit", _told("the paging limit", state, tokens, config.paging_limit)


def require_room(
    config: LimitedTexts, *, goal: str | None = None, count: TokenCounter = count_tokens
) -> None:
    """Refuse a configuration whose fixed part leaves no room, with this goal and this counter.

    Args:
        config: The configuration.
        goal: The goal; the configuration's own by default.
        count: Counts tokens.

    Raises:
        InputError: If a limit is passed before anything is remembered.
    """
    for limit, message in crowded_limits(config, goal=goal, count=count):
        raise InputError(message, field=f"{limit}.max_tokens")


def _told(name: str, state: str, tokens: int, limit: Limit) -> str:
    return (
        f"the prompt in state {state} has {tokens:,} tokens before anything is remembered, and "
        f"{name} is {limit.max_tokens:,}: raise it, or shorten the texts or the goal"
    )
