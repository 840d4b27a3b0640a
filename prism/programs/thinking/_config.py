"""The configuration of a thinking agent, and the file that it is read from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AliasPath, ConfigDict, Field, model_validator

from prism.files.declarations import Declaration, WholeNumber
from prism.files.source import Language, Problems
from prism.llm import Model
from prism.programs._documents import Document, note_unknown, read_part

ROLE = (
    "An AI state machine that utilizes a finite working memory to output both next_state and "
    "thinking_log, while managing infinite storage. You are the ultimate librarian-like system "
    "that manages information intelligently."
)
INSTRUCTIONS = (
    "Always respond with valid XML containing an 'agent' tag. In thinking state, provide "
    "'next_state' and 'thinking_log'. In executing state, provide 'action' with 'type', 'tags', "
    "and optionally 'value'."
)
_Number = Annotated[WholeNumber, Field(ge=1, le=1_000_000_000)]
_Text = Annotated[str, Field(min_length=1)]
_KeyPrefix = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*[A-Za-z_.-]$")]


class ThinkingLog(Declaration):
    """The log of thoughts.

    Attributes:
        enable: Whether thoughts are kept, and shown in the prompt.
        max_entries: How many are kept; the oldest rotates out.
        key_prefix: Prefix of their keys in the memory, before a number; it ends in no digit.
    """

    enable: bool = True
    max_entries: _Number = 10
    key_prefix: _KeyPrefix = "thinking_log_"


class Limit(Declaration):
    """A limit for the size of prompts.

    Attributes:
        enable: Whether it applies.
        max_tokens: Maximum number of tokens.
    """

    enable: bool = True
    max_tokens: _Number = 4096


class Iterate(Declaration):
    """A limit for the cycles of a run.

    Attributes:
        enable: Whether it applies.
        max_iterations: Maximum number of cycles, including failed ones.
    """

    enable: bool = True
    max_iterations: _Number = 1000


class StateDescription(Declaration):
    """What each state is for."""

    thinking: _Text = (
        "Build reasoning chains and accumulate thinking_log entries. Analyze information and "
        "decide next actions."
    )
    executing: _Text = (
        "Perform concrete actions: working_memory_add, working_memory_remove, storage_load, "
        "storage_save, storage_search"
    )
    paging: _Text = (
        "Manage memory overflow: what was used least moves from working memory to storage."
    )


class AvailableActions(Declaration):
    """What each action of the memory does; one without a text is not available."""

    working_memory_add: _Text | None = None
    working_memory_remove: _Text | None = None
    storage_load: _Text | None = None
    storage_save: _Text | None = None
    storage_search: _Text | None = None


_ALL_ACTIONS = AvailableActions(
    working_memory_add="Add new information to working memory with tags and value",
    working_memory_remove="Remove information from working memory using tags",
    storage_load="Load information from persistent storage to working memory using tags",
    storage_save="Save information from working memory to persistent storage using tags and value",
    storage_search="Find information in persistent storage by a few words, given as tags",
)


def _in_prompt(state: str, name: str) -> Any:
    """Return where a file has a text."""
    return Field(validation_alias=AliasPath("state", state, "prompt", name))


class Config(Declaration, Document):
    """The configuration of a thinking agent; by default the specification's own texts.

    Attributes:
        role: What the agent is; the prompt begins with it.
        instructions: How to reply.
        goal: The agent's goal, if any.
        state_description: What each state is for.
        available_actions: What each action of the memory does, if it is available.
        thinking_log: The log of thoughts.
        paging_limit: The size of a prompt above which the agent pages.
        hard_limit: The size that no prompt exceeds.
        iterate: A limit for the cycles of a run.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)
    language: ClassVar[Language] = "json"

    role: Annotated[_Text, _in_prompt("base", "role")] = ROLE
    instructions: Annotated[_Text, _in_prompt("base", "instructions")] = INSTRUCTIONS
    goal: _Text | None = None
    state_description: Annotated[StateDescription, _in_prompt("thinking", "state_description")] = (
        StateDescription()
    )
    available_actions: Annotated[AvailableActions, _in_prompt("executing", "available_actions")] = (
        _ALL_ACTIONS
    )
    thinking_log: ThinkingLog = ThinkingLog()
    paging_limit: Limit = Limit()
    hard_limit: Limit = Limit(max_tokens=8192)
    iterate: Iterate = Iterate()

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        soft, hard = self.paging_limit, self.hard_limit
        if soft.enable and hard.enable and hard.max_tokens < soft.max_tokens:
            limits = f"hard_limit ({hard.max_tokens}) must not be below paging_limit"
            raise ValueError(f"{limits} ({soft.max_tokens}): set both")
        return self

    @classmethod
    def _of(cls, problems: Problems, file: Path | None, name: str) -> Self:  # noqa: ARG003
        document = problems.source.value
        is_inside = isinstance(document, dict) and "agent" in document
        agent = document["agent"] if is_inside else document
        config = read_part(cls, agent, problems, ("agent",) if is_inside else ())
        keys = cls(goal="any").to_dict()
        note_unknown(document, keys if is_inside else keys["agent"], problems)
        problems.raise_if_any()
        assert config is not None
        return config

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration in the shape of a file."""
        values = self.model_dump(exclude_none=True)
        prompts = {
            "base": {name: values.pop(name) for name in ("role", "instructions")},
            "thinking": {"state_description": values.pop("state_description")},
            "executing": {"available_actions": values.pop("available_actions")},
        }
        states = {state: {"prompt": prompt} for state, prompt in prompts.items()}
        return {"agent": {**values, "state": states}}

    def to_json(self) -> str:
        """Return the text of a file that loads as this configuration."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


def with_window(client: Any, config: Config) -> Any:
    """Return a model with a window for the largest prompt and a reply, if none is given.

    Args:
        client: A `Model` or the text of one; any other client is returned as it is.
        config: Its hard limit is the largest prompt.
    """
    model = Model.of(client) if isinstance(client, str) else client
    if not isinstance(model, Model) or not config.hard_limit.enable:
        return client
    # only Ollama loads a model with the window that it is asked for
    if model.window is not None or model.client is not None or model.server != "ollama":
        return model
    hard = config.hard_limit.max_tokens
    # an estimate may be too low
    return replace(model, window=hard * 3 // 2 + (model.reply_tokens or -(-hard // 3)))
