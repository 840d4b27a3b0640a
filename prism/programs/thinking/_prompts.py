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
from prism.programs.thinking._memory import Memory, to_text

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_AROUND_THOUGHT = re.compile(r"</?(?:thought\b[^<>]*|thinking_log)>")
_MOST_REASON = 300
_MOST_TAGS = 10
_REASONS = ("reason", "answer", "surplus")

_JSON_INSTRUCTIONS = (
    "Always respond with one JSON object. In thinking state, provide 'next_state' and "
    "'thinking_log'. In executing state, provide 'action' with 'type', 'tags', and optionally "
    "'value'."
)
_XML_THOUGHT = """\
Reply with one agent element of this form and nothing else, and fill in its parts:
<agent><next_state>executing</next_state><thinking_log></thinking_log></agent>"""
_JSON_THOUGHT = """\
Reply with one JSON object of this form, and fill in its parts:
{"agent": {"next_state": "executing", "thinking_log": ""}}"""
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
        last_action: The last action and its result.
        news: What the agent has been told, oldest first.
    """

    working: Mapping[str, Any] = field(default_factory=dict)
    thoughts: Mapping[str, str] = field(default_factory=dict)
    stored: int = 0
    named: Sequence[str] = ()
    found: Mapping[str, Any] = field(default_factory=dict)
    last_action: Mapping[str, Any] | None = None
    news: Sequence[str] = ()

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return what every prompt shows of a memory, with nothing that may be wanted besides."""
        return cls(
            memory.working,
            memory.thoughts,
            memory.stored_count,
            last_action=memory.last_action,
            news=memory.news,
        )

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
            *(self._thinking() if state == "thinking" else self._acting(state, seen.last_action)),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def schema(self, state: str, last_action: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON Schema of what a model replies, for servers that take one."""
        text = {"type": "string"}
        if state == "thinking":
            next_state = {**text, "enum": list(STATE_DESCRIPTION)}
            return _object(agent=_object(next_state=next_state, thinking_log=text))

        parts: dict[str, list[Any]] = {"tags": [text]}
        models: dict[str, Any] = {}
        own = self._own_actions(state, last_action)
        if state == "executing":
            parts["value"] = [text]
        for each in own.values():
            models |= each.models
            for name, schema in each.schema.items():
                parts.setdefault(name, []).append(schema)
        kinds = {**text, "enum": [*own, *self._offered(state)]}
        named = {name: _any_of(schemas) for name, schemas in parts.items()}
        action = {**_object(type=kinds, **named), "required": ["type"] if own else ["type", "tags"]}
        whole = _object(agent=_object(action=action))
        return {**whole, "$defs": models} if models else whole

    def _offered(self, state: str) -> list[str]:
        available = self.config.available_actions
        return [name for name in available if (name in PAGING_ACTIONS) == (state == "paging")]

    def _own_actions(
        self, state: str, last_action: Mapping[str, Any] | None
    ) -> Mapping[str, OwnAction]:
        """Return the application's actions, with one that was just refused as the last.

        Small models take what is offered first: what the application is there for, and not again
        what was no use.
        """
        if state != "executing":
            return {}
        last = last_action or {}
        refused = last.get("type") if last.get("outcome") == "refused" else None
        return {name: self.own[name] for name in sorted(self.own, key=lambda name: name == refused)}

    def _thinking(self) -> Iterator[str]:
        # an agent that knows what it can do decides better whether to do it
        if self.own:
            yield _section("own_actions", _listed({n: each.text for n, each in self.own.items()}))
        yield _JSON_THOUGHT if self.is_json else _XML_THOUGHT
        yield _THOUGHT_PARTS

    def _acting(self, state: str, last_action: Mapping[str, Any] | None) -> Iterator[str]:
        own = self._own_actions(state, last_action)
        texts = {name: self.config.available_actions[name] for name in self._offered(state)}
        described = {**{name: each.text for name, each in own.items()}, **texts}
        yield _section("available_actions", _listed(described))
        with_value = [name for name in WITH_VALUE if name in texts]
        first = next(iter((*own, *with_value, *texts)), "")
        parts = (
            [*own[first].fields] if first in own else ["tags", *(["value"] if with_value else [])]
        )
        form = {"type": first, **dict.fromkeys(parts, "")}
        if self.is_json:
            yield f"{_JSON_FORM}\n{json.dumps({'agent': {'action': form}})}"
        else:
            inner = "".join(f"<{name}>{text}</{name}>" for name, text in form.items())
            yield f"{_XML_FORM}\n<agent><action>{inner}</action></agent>"
        yield _note(state, own, texts, with_value)


def _note(state: str, own: Iterable[str], texts: Iterable[str], with_value: Sequence[str]) -> str:
    """Return what there is to know of the parts of an action."""
    note = "type is one of the available actions."
    if texts:
        several = " or several with commas between them" if state == "paging" else ""
        note += f" tags is one identifier without spaces{several}."
    if with_value:
        note += f" Only {' and '.join(with_value)} take a value."
    if own := [*own]:
        note += f" {', '.join(own)} have fields of their own in place of tags and value."
    return note


def is_echo(thought: str, thoughts: Iterable[str]) -> bool:
    """Return whether a thought only repeats lines of others."""
    shown = {line for each in thoughts for line in _thought_lines(each)}
    return shown.issuperset(_thought_lines(thought))


def _thought_lines(thought: str) -> Iterator[str]:
    """Yield the lines of a thought, without the tags that stand around it in a prompt."""
    lines = map(str.strip, _AROUND_THOUGHT.sub("\n", thought).splitlines())
    return filter(None, lines)


def _any_of(schemas: Sequence[Any]) -> Any:
    """Return the schema of a field that several actions may have, each with its own type."""
    different = [each for number, each in enumerate(schemas) if each not in schemas[:number]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _object(**parts: Any) -> dict[str, Any]:
    return {"type": "object", "properties": parts, "required": list(parts)}


def _memory_sections(seen: Seen) -> Iterator[str]:
    """Yield what a prompt shows of a memory, part by part; empty for what there is not."""
    yield _section("working_memory", _elements("memory", "tag", seen.working))
    yield _section("thinking_log", _elements("thought", "key", seen.thoughts))
    news = (f"<new>{_escaped(each)}</new>" for each in seen.news)
    yield _section("news", news) if seen.news else ""
    yield _section("storage", _storage(seen))
    yield _section("last_action", _last_action(seen)) if seen.last_action else ""


def _storage(seen: Seen) -> Iterator[str]:
    kept = f"{seen.stored:,} memories are stored" if seen.stored != 1 else "1 memory is stored"
    yield f"{kept}." if not seen.named else f"{kept}. These match the last thought best:"
    for tag in seen.named:
        yield f'<memory tag="{_quoted(tag)}"/>'


def _last_action(seen: Seen) -> Iterator[str]:
    """Say what the agent did last, and the result."""
    last = seen.last_action or {}
    yield from (_outcome(each) for each in (last, last.get("fault", {})) if "outcome" in each)
    for key, words in (("moved_out", "Moved to storage"), ("moved_in", "Brought back")):
        if tags := list(last.get(key, ())):
            more = f" and {len(tags) - _MOST_TAGS} more" if len(tags) > _MOST_TAGS else ""
            yield _escaped(_shortened(f"{words}: {', '.join(tags[:_MOST_TAGS])}") + more)
    if seen.found:
        yield "It found:"
        yield from _elements("memory", "tag", seen.found)


def _outcome(result: Mapping[str, Any]) -> str:
    """Return an action, or a cycle without one, and its result, as one line."""
    what = f"{result.get('type', '')} {result.get('tags', '')}".strip() or "no action"
    cycle = f"In cycle {result.get('cycle', 0)} ({result.get('state', '')})"
    why = (f". {_shortened(str(result[key]))}" for key in _REASONS if result.get(key))
    return _escaped(f"{cycle}: {what}: {result['outcome']}{''.join(why)}")


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_REASON else f"{text[:_MOST_REASON]} …"


def _listed(texts: Mapping[str, str]) -> Iterator[str]:
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
