"""The configuration of a thinking agent, and the files that it is read from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import ConfigDict, Field, create_model, model_validator

from prism.cognition import _settings as settings
from prism.cognition._prompts import LEAST, build_prompt
from prism.cognition._settings import BLOCKS, HARD_LIMIT, Limit
from prism.errors import FieldValueError, InputError
from prism.files import declarations, reading
from prism.files._places import depth_of
from prism.files._source import MOST_TOLD, DocumentError, Problem, Problems, Source, Where, key_of
from prism.files.declarations import Declaration, Optionally
from prism.reasoner._tokens import TokenCounter, count_tokens

SCHEMA_NAME = "cognition.schema.json"
MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 50

_EXAMPLE = "output_example"
_UNKNOWN = "extra_forbidden"
_HARMLESS = (_UNKNOWN, "set_twice")

ConfigProblem = Problem

DeclarationT = TypeVar("DeclarationT", bound=Declaration)


class ConfigFileError(DocumentError):
    """A configuration cannot be loaded.

    Args:
        problems: Everything that is wrong, in the order of the file.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(settings.PromptTexts):
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

    thinking_log: settings.ThinkingLog = field(default_factory=settings.ThinkingLog)
    paging_limit: Limit = field(default_factory=Limit)
    hard_limit: Limit = field(default_factory=lambda: Limit(max_tokens=HARD_LIMIT))
    iterate: settings.Iterate = field(default_factory=settings.Iterate)
    paging: settings.Paging = field(default_factory=settings.Paging)
    storage: settings.StorageLimits = field(default_factory=settings.StorageLimits)
    warnings: tuple[ConfigProblem, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Fill in what is left out, and refuse limits that contradict each other."""
        settings.PromptTexts.__post_init__(self)
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
    count: TokenCounter = count_tokens,
    own: Mapping[str, Any] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield each limit that a prompt exceeds even without memories, and a message.

    Args:
        config: The configuration.
        count: Counts tokens.
        own: Actions of the application, by name.
    """
    limits = {"hard_limit": config.hard_limit, "paging_limit": config.paging_limit}
    for state in config.state_description:
        tokens = build_prompt(config, state, LEAST, count=count, own=own).tokens
        for name, limit in limits.items():
            # beyond the paging limit the agent would page for ever: nothing that can go makes the
            # prompt small enough
            applies = limit.enable and (name == "hard_limit" or state == "thinking")
            if applies and tokens > limit.max_tokens:
                yield (
                    name,
                    f"the prompt in state {state} has {tokens:,} tokens even without memories, and "
                    f"the {name.replace('_', ' ')} is {limit.max_tokens:,}: raise it, or shorten "
                    "the texts or the goal",
                )


Text = Optionally[str]

_SIZES = {
    "paging_limit": "The size of a prompt above which the agent pages.",
    "hard_limit": "The size that no prompt exceeds.",
}

# what files of lkjagent hold besides: it is left out, and the file is still read
OfLkjagent = Annotated[Any, Field(deprecated=True)]


def _with(keys: Any) -> Callable[[type[DeclarationT]], type[DeclarationT]]:
    """Give a declaration further keys, each with its type and default."""
    return lambda cls: create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, **keys)


def _having(kind: Any, *names: str) -> Callable[[type[DeclarationT]], type[DeclarationT]]:
    """Give a declaration further keys of one type."""
    return _with(dict.fromkeys(names, (kind, None)))


def _blocks() -> Iterator[tuple[str, Any]]:
    """Yield the parts of a configuration, as keys."""
    optional: Any = Optionally
    for name, block in BLOCKS.items():
        kind: Any = settings.declared(block)
        kind = kind | settings.Number if block is Limit else kind
        yield name, (optional[kind], Field(None, description=_SIZES.get(name)))


@_having(OfLkjagent, "evaluating", "commanding")
@_having(Text, *settings.STATE_DESCRIPTION)
class StateDescriptions(Declaration):
    """The descriptions of the states."""


@_having(Text, *settings.AVAILABLE_ACTIONS)
class AvailableActions(Declaration):
    """What each action does.

    Of the five memory actions only those that are named are available, if any is named, and the
    same with the two of paging.
    """


class Texts(Declaration):
    """Texts that may stand in several places."""

    state_description: Optionally[StateDescriptions] = None
    available_actions: Optionally[AvailableActions] = None


@_with(dict(_blocks()))
class Settings(Texts):
    """What may stand at the top, or under ``agent``."""

    goal: Text = Field(None, description="Goal of the agent.")


@_having(OfLkjagent, "purpose", "strategy", "selection_criteria")
class Prompt(Texts):
    """The texts of a prompt."""

    model_config = ConfigDict(
        json_schema_extra={"patternProperties": {f"^{_EXAMPLE}": {"deprecated": True}}}
    )

    ignored_prefix = _EXAMPLE

    @model_validator(mode="before")
    @classmethod
    def _leave_out_examples(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value

        return {key: inner for key, inner in value.items() if not key.startswith(_EXAMPLE)}


class BasePrompt(Prompt):
    """The prompt of every state."""

    role: Text = None
    instructions: Text = None


@_having(OfLkjagent, "role", "instructions")
class StatePrompt(Prompt):
    """The prompt of one state."""


class Base(Declaration):
    """What every state has; a text in place of the prompt is the role."""

    prompt: Optionally[BasePrompt | str] = None


class State(Declaration):
    """What a state has; a text in place of the prompt is its description."""

    prompt: Optionally[StatePrompt | str] = None


@_having(OfLkjagent, "evaluating", "commanding")
class States(Declaration):
    """The states."""

    base: Optionally[Base] = None
    thinking: Optionally[State] = None
    executing: Optionally[State] = None
    paging: Optionally[State] = None


@_having(OfLkjagent, "think_log", "evaluation_log", "execution_log", "command_log", "soft_limit")
@_having(OfLkjagent, "default_status", "iteration", "max_iterate", "persistence", "prompt")
class Agent(Settings):
    """The agent."""

    state: Optionally[States] = None


@_having(OfLkjagent, "version", "llm", "documentation", "logging", "monitoring")
class ConfigDocument(Settings):
    """A configuration."""

    schema_: Text = Field(None, alias="$schema")
    agent: Optionally[Agent] = None


def known_keys(kind: Any = ConfigDocument, top: Where = ()) -> Iterator[tuple[str, Where]]:
    """Yield every key that is used with where it stands, those nearer to the top last."""
    for name, each in reversed(kind.model_fields.items()):
        if not each.deprecated:
            where = (*top, each.alias or name)
            for inner in declarations.alternatives(each.annotation):
                if declarations.is_declaration(inner):
                    yield from known_keys(inner, where)
            yield where[-1], where


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of configurations."""
    found = declarations.schema_of(
        ConfigDocument, title="The configuration of a thinking agent of prism"
    )
    note = "Keys that are marked as deprecated belong to lkjagent and are ignored."

    return {**found, "description": note}


_KNOWN = dict(known_keys())
_USED = {where for _, where in known_keys()} - {("$schema",)}


class Reading(Problems):
    """The configuration that was read, and its problems.

    Args:
        source: The document.

    Attributes:
        settings: The value of each setting and where it was found, by the setting's name, or the
            names of block and key.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.settings: dict[Where, tuple[Any, Where]] = {}

    @property
    def is_usable(self) -> bool:
        """Whether what is known in it has the right shape, so that more can be said of it."""
        errors = self.errors
        is_whole = len(errors) < MOST_TOLD  # else nobody has looked at the rest
        return is_whole and all(problem.kind in _HARMLESS for problem in errors)

    def add(self, where: Where, message: str, kind: str = "value", **about: Any) -> None:
        """Add a problem; of a key that belongs somewhere else, say where."""
        is_lost = kind == _UNKNOWN and "did you mean" not in message
        if is_lost and self.counts["error"] < MOST_TOLD:
            for elsewhere in get_close_matches(str(where[-1]), _KNOWN, n=1):
                message = f"is unknown here; did you mean {key_of(_KNOWN[elsewhere])}?"
        super().add(where, message, kind, **about)

    def place_of(self, *setting: str) -> Where:
        """Return where a setting was found, or would be."""
        return self.settings.get(setting, (None, ("agent", *setting)))[1]

    def take_settings(self) -> None:
        """Take the settings; the same one may stand in two places if it is the same there."""
        for where, value in _values(self.source.value):
            # others are told already
            if where in _USED:
                first, earlier = self.settings.setdefault(_setting_at(where), (value, where))
                if first != value:
                    problem = f"differs from {key_of(earlier)}: leave one out"
                    self.add(where, problem, "set_twice")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a configuration."""
        found: dict[str, Any] = {}
        for (name, *part), (value, _) in self.settings.items():
            if part:
                whole = int(value) if isinstance(value, float) else value
                found.setdefault(str(name), {})[part[0]] = whole
            else:
                found[str(name)] = value

        defaults = Config()
        return {
            name: replace(getattr(defaults, name), **value) if name in BLOCKS else value
            for name, value in found.items()
        }


def _values(value: Any, where: Where = ()) -> Iterator[tuple[Where, Any]]:
    """Yield the values of a document that are no mappings, and where each stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, (*where, key))
    else:
        yield where, value


def _setting_at(where: Where) -> Where:
    """Return the name of the setting at a place, or the names of its block and key."""
    match where[1:] if where[0] == "agent" else where:
        case ("state", "base", "prompt"):
            return ("role",)
        case ("state", state, "prompt"):
            return ("state_description", state)
        case ("state", _, "prompt", *setting) | (*setting,):
            is_size = len(setting) == 1 and BLOCKS.get(str(setting[0])) is Limit
            return (*setting, "max_tokens") if is_size else tuple(setting)


def read_config(text: str, name: str) -> Reading:
    """Read a configuration.

    Args:
        text: JSON.
        name: The file, for messages.

    Raises:
        InputError: If it is not JSON, or larger than any configuration.
    """
    if len(text.removeprefix("\ufeff")) > MAX_CHARACTERS:
        raise InputError(f"has more than {MAX_CHARACTERS:,} characters", path=name)

    source = Source.parse(text, "json", path=name)
    if depth_of(text) > MAX_DEPTH:
        raise InputError(f"is nested more than {MAX_DEPTH} levels deep", path=name)

    found = Reading(source)
    declarations.shaped(ConfigDocument, source.value, found)
    declarations.note_ignored(ConfigDocument, found, "warning")
    if found.is_usable:
        found.take_settings()

    return found
