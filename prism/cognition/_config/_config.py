"""The configuration of a thinking agent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from prism.cognition._config._reading import MAX_CHARACTERS, Reading, read_config
from prism.cognition._prompts import LEAST, build_prompt
from prism.cognition._settings import (
    BLOCKS,
    HARD_LIMIT,
    Iterate,
    Limit,
    Paging,
    PromptTexts,
    StorageLimits,
    ThinkingLog,
)
from prism.errors import FieldValueError
from prism.files import reading
from prism.files._source import DocumentError, Problem
from prism.statechart.reasoner._tokens import TokenCounter, count_tokens

ConfigProblem = Problem


class ConfigFileError(DocumentError):
    """A configuration cannot be loaded.

    Args:
        problems: Everything that is wrong, in the order of the file.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(PromptTexts):
    """The configuration of a thinking agent; by default the specification's own texts.

    Args:
        role: What the agent is; the prompt begins with it.
        instructions: How to reply.
        goal: The agent's goal, if any.
        state_description: What each state is for; states that are left out have their defaults.
        available_actions: What each action does. If any of the memory's actions is named, only the
            named ones are available.
        thinking_log: The log of thoughts.
        paging_limit: The size of a prompt above which the agent pages.
        hard_limit: The size that no prompt exceeds.
        iterate: Limits for the cycles of a run.
        paging: How to decide what leaves the working memory.
        storage: How much of the storage is kept and shown.
        warnings: Warnings of the reader about what it left out.

    Raises:
        FieldValueError: If the hard limit is below the paging limit, or there is no such state or
            action.
    """

    thinking_log: ThinkingLog = field(default_factory=ThinkingLog)
    paging_limit: Limit = field(default_factory=Limit)
    hard_limit: Limit = field(default_factory=lambda: Limit(max_tokens=HARD_LIMIT))
    iterate: Iterate = field(default_factory=Iterate)
    paging: Paging = field(default_factory=Paging)
    storage: StorageLimits = field(default_factory=StorageLimits)
    warnings: tuple[ConfigProblem, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Fill in what is left out, and refuse limits that contradict each other."""
        PromptTexts.__post_init__(self)
        for name in ("paging_limit", "hard_limit"):
            limit: Any = getattr(self, name)
            if isinstance(limit, int):  # as in a file
                object.__setattr__(self, name, Limit(max_tokens=limit))

        soft, hard = self.paging_limit, self.hard_limit
        if soft.enable and hard.enable and hard.max_tokens < soft.max_tokens:
            raise FieldValueError(
                f"hard_limit ({hard.max_tokens}) must not be below paging_limit "
                f"({soft.max_tokens}): set both"
            )

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a configuration from a file.

        Args:
            path: The file, JSON.

        Raises:
            InputError: If it cannot be read, or is not JSON.
            ConfigFileError: (an InputError) listing everything that is wrong.
        """
        return cls.from_text(_text_of(Path(path)), name=str(path))

    @classmethod
    def from_text(cls, text: str, *, name: str = "config") -> Self:
        """Read a configuration from a text.

        Args:
            text: The configuration, a JSON file.
            name: What to call it in messages.

        Raises:
            InputError: If it is not JSON, or holds an error.
        """
        found = read_config(text, name)
        made = cls._made(found)
        if made is None or found.errors:
            raise ConfigFileError(found.errors)

        return made

    @classmethod
    def check(cls, path: Path | str) -> list[ConfigProblem]:
        """Return everything that is wrong with a file, warnings too, in the order of the file.

        Args:
            path: The file, JSON.

        Raises:
            InputError: If it cannot be read, or is not JSON.
        """
        found = read_config(_text_of(Path(path)), str(path))
        cls._made(found)
        return sorted(found)

    @classmethod
    def _made(cls, found: Reading) -> Self | None:
        """Return the configuration, if the file is usable, and note what is wrong with it."""
        if not found.is_usable:
            return None

        warnings = tuple(sorted(found))
        try:
            made = cls(**found.arguments(), warnings=warnings)
        except FieldValueError as error:
            found.add(found.place_of("hard_limit", "max_tokens"), str(error), "limits")
            return None

        for limit, message in crowded_limits(made):
            found.add(found.place_of(limit, "max_tokens"), message, "no_room")
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration in the shape of a file."""
        prompts = {
            "base": {"role": self.role, "instructions": self.instructions},
            "thinking": {"state_description": dict(self.state_description)},
            "executing": {"available_actions": dict(self.available_actions)},
        }
        agent: dict[str, Any] = {} if self.goal is None else {"goal": self.goal}
        for block in BLOCKS:
            agent[block] = asdict(getattr(self, block))
        agent["state"] = {state: {"prompt": prompt} for state, prompt in prompts.items()}

        return {"agent": agent}

    def to_json(self) -> str:
        """Return the text of a file that loads as this configuration."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


def _text_of(file: Path) -> str:
    with reading(file), file.open(encoding="utf-8") as opened:
        # a little more than is read at most: enough to be refused, whatever the file's size
        return opened.read(MAX_CHARACTERS + 2)


def crowded_limits(
    config: Config,
    *,
    goal: str | None = None,
    count: TokenCounter = count_tokens,
    own: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield each limit that a prompt exceeds even without memories, and a message.

    Args:
        config: The configuration.
        goal: The goal; the configuration's own by default.
        count: Counts tokens.
        own: Actions of the application, and what a prompt says of each.
    """
    for state in config.state_description:
        tokens = build_prompt(config, state, LEAST, goal=goal, count=count, own=own).tokens
        if config.hard_limit.enable and tokens > config.hard_limit.max_tokens:
            yield "hard_limit", _told("the hard limit", state, tokens, config.hard_limit)

        # beyond it the agent would page for ever: nothing that can go makes the prompt small enough
        is_thinking = state == "thinking" and config.paging_limit.enable
        if is_thinking and tokens > config.paging_limit.max_tokens:
            yield "paging_limit", _told("the paging limit", state, tokens, config.paging_limit)


def _told(name: str, state: str, tokens: int, limit: Limit) -> str:
    return (
        f"the prompt in state {state} has {tokens:,} tokens even without memories, and {name} is "
        f"{limit.max_tokens:,}: raise it, or shorten the texts or the goal"
    )
