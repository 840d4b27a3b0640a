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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from prism.programs.thinking._actions import OwnAction
from prism.programs.thinking._config import (
    INSTRUCTIONS,
    PAGING_ACTIONS,
    STATE_DESCRIPTION,
    WITH_VALUE,
    Config,
)
from prism.programs.thinking._memory import to_text

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_JSON_INSTRUCTIONS = (
    "Always respond with one JSON object. In thinking state, provide 'next_state' and "
    "'thinking_log'. In executing state, provide 'action' with 'type', 'tags', and optionally "
    "'value'."
)
_THOUGHT_PARTS = """\
next_state is one word: thinking to go on thinking, executing to carry out one action, or paging \
to make room in working memory. thinking_log is what you have found out, in your own words."""
_XML_FORM = "Reply with one agent element of this form and nothing else, and fill in its parts:"
_JSON_FORM = "Reply with one JSON object of this form, and fill in its parts:"


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of its memory that an agent sees.

    Args:
        working: The working memory.
        thoughts: The log, oldest first.
        stored: How many memories are in storage.
        named: Tags of memories in storage that may be wanted.
        found: Memories that the last action found, by tag.
        last_action: The last action and its result, and what has failed since.
        refused: The type of the last action, if it was refused.
        news: What the agent has been told, oldest first.
    """

    working: Mapping[str, Any] = field(default_factory=dict)
    thoughts: Mapping[str, str] = field(default_factory=dict)
    stored: int = 0
    named: Sequence[str] = ()
    found: Mapping[str, Any] = field(default_factory=dict)
    last_action: str = ""
    refused: str = ""
    news: Sequence[str] = ()

    def without(self, gone: Iterable[str]) -> Self:
        """Return what is seen without some memories and thoughts."""
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
        own: Actions of the application, by name.
        is_json: Whether the server is sent a schema, and so replies in JSON.
    """

    config: Config
    own: Mapping[str, OwnAction]
    is_json: bool = False

    def prompt(self, state: str, seen: Seen) -> str:
        """Return the prompt of a cycle."""
        config = self.config
        instructions = config.instructions
        if self.is_json and instructions == INSTRUCTIONS:
            instructions = _JSON_INSTRUCTIONS
        parts = [
            config.role,
            instructions,
            _section("states", _listed(config.state_description)),
            _section("goal", [_escaped(config.goal)]) if config.goal else "",
            *_memory_sections(seen),
            f"You are in the state {state}.",
            *(self._thinking() if state == "thinking" else self._acting(state, seen.refused)),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def schema(self, state: str) -> dict[str, Any]:
        """Return the JSON Schema of what a model replies, for servers that take one."""
        text = {"type": "string"}
        if state == "thinking":
            next_state = {**text, "enum": list(STATE_DESCRIPTION)}
            return _object(agent=_object(next_state=next_state, thinking_log=text))

        own, texts = self._offered(state)
        parts: dict[str, list[Any]] = {"tags": [text]}
        if state == "executing":
            parts["value"] = [text]
        models: dict[str, Any] = {}
        for each in own.values():
            models |= each.models
            for name, schema in each.schema.items():
                # several actions may have a field of one name, each with its own type
                if schema not in parts.setdefault(name, []):
                    parts[name].append(schema)
        named = {name: {"anyOf": each} if each[1:] else each[0] for name, each in parts.items()}
        action = _object(type={**text, "enum": [*own, *texts]}, **named)
        action["required"] = ["type"] if own else ["type", "tags"]
        whole = _object(agent=_object(action=action))
        return {**whole, "$defs": models} if models else whole

    def _offered(self, state: str) -> tuple[Mapping[str, OwnAction], Mapping[Any, str]]:
        """Return the actions of a state: the application's, which small models should see first."""
        texts: Mapping[Any, str] = {
            name: text
            for name, text in self.config.available_actions.items()
            if (name in PAGING_ACTIONS) == (state == "paging")
        }
        return self.own if state == "executing" else {}, texts

    def _thinking(self) -> Iterator[str]:
        # an agent that knows what it can do decides better whether to do it
        if self.own:
            yield _section("own_actions", _listed({n: each.text for n, each in self.own.items()}))
        yield self._shown({"next_state": "executing", "thinking_log": ""})
        yield _THOUGHT_PARTS

    def _acting(self, state: str, refused: str) -> Iterator[str]:
        own, texts = self._offered(state)
        yield _section(
            "available_actions", _listed({**{n: e.text for n, e in own.items()}, **texts})
        )
        with_value = [name for name in WITH_VALUE if name in texts]
        # small models do what the form shows: not again what was refused just now
        first = next(
            iter((*sorted(own, key=lambda name: name == refused), *with_value, *texts)), ""
        )
        parts = own[first].fields if first in own else ["tags", *(["value"] if with_value else [])]
        yield self._shown({"action": {"type": first, **dict.fromkeys(parts, "")}})

        note = "type is one of the available actions."
        if texts:
            several = " or several with commas between them" if state == "paging" else ""
            note += f" tags is one identifier without spaces{several}."
        if with_value:
            note += f" Only {' and '.join(with_value)} take a value."
        if own:
            note += f" {', '.join(own)} have fields of their own in place of tags and value."
        yield note

    def _shown(self, agent: Mapping[str, Any]) -> str:
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


def _memory_sections(seen: Seen) -> Iterator[str]:
    """Yield what a prompt shows of a memory, part by part; empty for what there is not."""
    yield _section("working_memory", _elements("memory", "tag", seen.working))
    yield _section("thinking_log", _elements("thought", "key", seen.thoughts))
    if seen.news:
        yield _section("news", (f"<new>{_escaped(each)}</new>" for each in seen.news))
    kept = f"{seen.stored:,} memories are stored" if seen.stored != 1 else "1 memory is stored"
    named = [f'<memory tag="{_quoted(tag)}"/>' for tag in seen.named]
    more = ". These match the last thought best:" if named else "."
    yield _section("storage", [kept + more, *named])
    if seen.last_action:
        found = ["It found:", *_elements("memory", "tag", seen.found)] if seen.found else []
        yield _section("last_action", [_escaped(seen.last_action), *found])


def _listed(texts: Mapping[Any, str]) -> Iterator[str]:
    return (f"{name}: {text}" for name, text in texts.items())


def _section(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f"<{name}>", *lines, f"</{name}>"])


def _elements(name: str, attribute: str, values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        yield f'<{name} {attribute}="{_quoted(key)}">{_escaped(to_text(value))}</{name}>'


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def _escaped(text: str) -> str:
    clean = _UNFIT.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    return clean.replace("&", "&amp;").replace("<", "&lt;")
