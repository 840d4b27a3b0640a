"""The prompt of a cycle: what never changes first, then the memory, then what is to be done now.

A server keeps what it has worked out for the beginning of a prompt, so prompts differ as late as
they can: role, instructions, descriptions and goal are the same in all cycles, new memories and
thoughts come after older ones, and what depends on the state comes last.

Everything that comes from a memory, a thought or the goal is escaped as in XML, so that no value
can end the element it stands in, or begin another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from prism.cognition._memory._values import to_text
from prism.cognition._settings import PAGING_ACTIONS, STATE_DESCRIPTION, WITH_VALUE, PromptTexts
from prism.errors import UnknownStateError
from prism.reasoner._tokens import TokenCounter, count_tokens

_THOUGHT = "What you have found out, and what to do next."
"""The thought in the form that prompts show."""

TAG_OF_EXAMPLE = "name_of_the_memory"
FIELD_OF_EXAMPLE = "..."
"""What stands for a tag and a field in the form; models that echo their prompt reply with it."""

_VALUE_OF_EXAMPLE = "What it says."

_AROUND_THOUGHT = re.compile(r"</?(?:thought\b[^<>]*|thinking_log)>")


_THINKING = f"""\
You are in the state thinking. Reply with one agent element and nothing else:
<agent>
<next_state>executing</next_state>
<thinking_log>{_THOUGHT}</thinking_log>
</agent>
next_state is one word: thinking to go on thinking, executing to carry out one action, or paging \
to make room in working memory. Or as JSON: {{"next_state": "executing", "thinking_log": "..."}}"""

_ACTING = """\
You are in the state {state}. Reply with one agent element that holds one action, and nothing else:
<agent>
<action>
{elements}
</action>
</agent>
{note}
Or as JSON: {{"action": {data}}}"""

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_WHY = ("reason", "answer", "surplus")
_MOST_REASON = 300
_MOST_TAGS = 10
"""Limits for reporting the last action: characters of its reason, and tags that moved."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of its memory that an agent sees.

    Args:
        working: The working memory.
        thoughts: The log, oldest first.
        stored: How many memories are in storage.
        named: Memories in storage that may be wanted, by tag.
        found: Memories that the last action found, by tag.
        last_action: The last action and its result.
        news: What the agent has been told, oldest first.
    """

    working: Mapping[str, Any] = field(default_factory=dict)
    thoughts: Mapping[str, str] = field(default_factory=dict)
    stored: int = 0
    named: Mapping[str, Any] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)
    last_action: Mapping[str, Any] | None = None
    news: Sequence[str] = ()

    @classmethod
    def of(cls, memory: Any) -> Self:
        """Return what every prompt shows of a `Memory`, with nothing that may be wanted besides."""
        return cls(
            working=memory.working,
            thoughts=memory.thoughts,
            stored=memory.stored_count,
            last_action=memory.last_action,
            news=memory.news,
        )


LEAST = Seen(stored=10**9)
"""The least that every prompt shows, however many memories are stored."""


def without(seen: Seen, gone: Collection[tuple[str, str]]) -> Seen:
    """Return what is seen without some memories and thoughts.

    Args:
        seen: What is seen.
        gone: What is left out: ``working``, ``thoughts``, ``found`` or ``named``, and the tag or
            key.
    """
    left_out = frozenset(gone)
    left: dict[str, Any] = {
        part: {
            key: value for key, value in getattr(seen, part).items() if (part, key) not in left_out
        }
        for part in {part for part, _ in gone}
    }
    return replace(seen, **left)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a cycle.

    Args:
        text: The text.
        tokens: How many tokens it has.
        moving: Thoughts and memories that move to storage, in this order, as it lacks them.
        tokens_before: Tokens of the prompt with them.
    """

    text: str
    tokens: int
    moving: tuple[str, ...] = ()
    tokens_before: int = 0


def build_prompt(
    config: PromptTexts,
    state: str,
    seen: Seen,
    *,
    count: TokenCounter = count_tokens,
    own: Mapping[str, Any] | None = None,
) -> Prompt:
    """Return the prompt of a cycle.

    Args:
        config: The texts.
        state: The state that the agent is in.
        seen: What it sees of its memory.
        count: Counts tokens.
        own: Actions of the application by name, an `OwnAction` each.

    Raises:
        UnknownStateError: If there is no such state.
    """
    if state not in STATE_DESCRIPTION:
        raise UnknownStateError(f"there is no state {state!r}: use {', '.join(STATE_DESCRIPTION)}")

    parts = [
        config.role,
        config.instructions,
        _section("states", _listed(config.state_description)),
        _section("goal", [_escaped(config.goal)]) if config.goal else "",
        *_memory_sections(seen),
        _now(config, state, own or {}, seen.last_action or {}),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"

    return Prompt(text, count(text))


def _memory_sections(seen: Seen) -> Iterator[str]:
    """Yield what a prompt shows of a memory, part by part; empty for what there is not."""
    yield _section("working_memory", _elements("memory", "tag", seen.working))
    yield _section("thinking_log", _elements("thought", "key", seen.thoughts))
    news = (f"<new>{_escaped(each)}</new>" for each in seen.news)
    yield _section("news", news) if seen.news else ""
    yield _section("storage", _storage(seen))
    yield _section("last_action", _last_action(seen)) if seen.last_action else ""


def is_echo(thought: str, thoughts: Iterable[str]) -> bool:
    """Return True for a thought that only repeats what the prompt shows.

    Args:
        thought: The thought.
        thoughts: Those that the prompt shows; so is the one in its form.
    """
    shown = {line for each in (_THOUGHT, *thoughts) for line in _thought_lines(each)}
    return shown.issuperset(_thought_lines(thought))


def _thought_lines(thought: str) -> Iterator[str]:
    """Yield the lines of a thought, without the tags that stand around it in a prompt."""
    lines = map(str.strip, _AROUND_THOUGHT.sub("\n", thought).splitlines())
    return filter(None, lines)


def reply_schema(state: str, actions: Iterable[str], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of what a model replies, for servers that take one.

    Args:
        state: The state that the agent is in.
        actions: Types of action that are available.
        own: Actions of the application by name, an `OwnAction` each.
    """
    text = {"type": "string"}
    if state == "thinking":
        next_state = {**text, "enum": list(STATE_DESCRIPTION)}
        return _object(agent=_object(next_state=next_state, thinking_log=text))

    parts: dict[str, list[Any]] = {"tags": [text]}
    models: dict[str, Any] = {}
    if state == "executing":
        parts["value"] = [text]
        for each in own.values():
            models |= each.models
            for name, schema in each.schema.items():
                parts.setdefault(name, []).append(schema)

    named = {name: _any_of(schemas) for name, schemas in parts.items()}
    kinds = {**text, "enum": [*_offered(actions, state), *own]}
    action = {**_object(type=kinds, **named), "required": ["type"] if own else ["type", "tags"]}
    # in an object around it, as the specification has it
    whole = _object(agent=_object(action=action))
    return {**whole, "$defs": models} if models else whole


def _any_of(schemas: Sequence[Any]) -> Any:
    """Return the schema of a field that several actions may have, each with its own type."""
    different = [each for place, each in enumerate(schemas) if each not in schemas[:place]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _object(**parts: Any) -> dict[str, Any]:
    return {"type": "object", "properties": parts, "required": list(parts)}


def _offered(actions: Iterable[str], state: str) -> list[str]:
    """Return which of the available actions are those of a state."""
    return [name for name in actions if (name in PAGING_ACTIONS) == (state == "paging")]


def _storage(seen: Seen) -> Iterator[str]:
    kept = f"{seen.stored:,} memories are stored" if seen.stored != 1 else "1 memory is stored"
    yield f"{kept}." if not seen.named else f"{kept}. These match the last thought best:"
    for tag in seen.named:
        yield f'<memory tag="{_quoted(tag)}"/>'


def _last_action(seen: Seen) -> Iterator[str]:
    """Say what the agent did last, and the result."""
    last = seen.last_action or {}
    yield from (_outcome(told) for told in (last, last.get("fault", {})) if "outcome" in told)
    for key, words in (("moved_out", "Moved to storage"), ("moved_in", "Brought back")):
        if tags := list(last.get(key, ())):
            more = f" and {len(tags) - _MOST_TAGS} more" if len(tags) > _MOST_TAGS else ""
            yield _escaped(_shortened(f"{words}: {', '.join(tags[:_MOST_TAGS])}") + more)
    if seen.found:
        yield "It found:"
        yield from _elements("memory", "tag", seen.found)


def _outcome(told: Mapping[str, Any]) -> str:
    """Return an action, or a cycle without one, and its result, as one line."""
    what = f"{told.get('type', '')} {told.get('tags', '')}".strip() or "no action"
    place = f"In cycle {told.get('cycle', 0)} ({told.get('state', '')})"
    why = (f". {_shortened(str(told[key]))}" for key in _WHY if told.get(key))
    return _escaped(f"{place}: {what}: {told['outcome']}{''.join(why)}")


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_REASON else f"{text[:_MOST_REASON]} …"


def _on_names(with_value: Sequence[str], own: Iterable[str]) -> str:
    note = "tags is one identifier without spaces."
    note += f" Only {' and '.join(with_value)} take a value." if with_value else ""
    if own := [*own]:
        note += f" The fields of {', '.join(own)} stand in the place of tags, each by its name."
    return note


def _now(
    config: PromptTexts, state: str, own: Mapping[str, Any], last_action: Mapping[str, Any]
) -> str:
    told = {name: each.told for name, each in own.items()}
    if state == "thinking":
        # an agent that knows what it can do decides better whether to do it
        return f"{_section('own_actions', _listed(told))}\n\n{_THINKING}" if own else _THINKING

    texts = config.available_actions
    actions = {name: texts[name] for name in _offered(texts, state)}
    with_value = [name for name in WITH_VALUE if name in actions]
    note = "tags names one memory, or several separated by commas."
    form = {"type": "page_out", "tags": TAG_OF_EXAMPLE}
    if state == "executing":
        note = _on_names(with_value, own)
        form["type"] = next(iter(with_value or actions), WITH_VALUE[0])
        if with_value:
            form["value"] = _VALUE_OF_EXAMPLE
        # small models do what the example does: it shows what the application is there for, and
        # not again what was refused just now
        refused = last_action.get("type"), "refused"
        for name in sorted(own, key=lambda it: (it, last_action.get("outcome")) == refused)[:1]:
            form = {"type": name, **dict.fromkeys(own[name].fields, FIELD_OF_EXAMPLE)}
        actions |= told

    acting = _ACTING.format(
        state=state,
        elements="\n".join(f"<{name}>{text}</{name}>" for name, text in form.items()),
        note=note,
        data=json.dumps(form).replace(_VALUE_OF_EXAMPLE, FIELD_OF_EXAMPLE),
    )
    return f"{_section('available_actions', _listed(actions))}\n\n{acting}"


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
