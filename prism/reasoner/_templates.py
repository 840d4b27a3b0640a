"""Prompts of the user's own: templates with fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner._prompts import (
    PromptSettings,
    WritePrompt,
    attribute_of,
    description_of,
    format_context,
    in_words,
    indented,
    joined,
    memory_of,
    name_of,
    persona_of,
    situation_of,
    value_in,
)
from prism.reasoner._questions import Question
from prism.statechart.states import state_text

_BRACES = re.compile(r"\{([^{}\n]{1,200})\}")

_FIRST_WORD = re.compile(r"\s*([^\W\d]\w*)[\w.]*")

_FIELDS = (
    *("name", "persona", "state", "trigger", "options", "chart", "description", "situation"),
    *("context", "memory", "reply"),
)


def user_prompt(prompt: str | None, *, has_memory: bool) -> WritePrompt | None:
    """Return what writes the user's own prompt, a template.

    Args:
        prompt: Its text; None for the default prompt.
        has_memory: Whether it may name the memory.

    Raises:
        ReasonerError: If it names an unknown field, or is empty; the message lists all problems.
    """
    if prompt is None:
        return None
    if not isinstance(prompt, str):
        raise ReasonerError(f"prompt must be a template, a text with {{fields}}, got {prompt!r}")

    template, problems = template_of(prompt, _FIELDS, ("agent", "context", "world"))
    if not prompt.strip():
        problems.append("is empty: omit it to use the default")
    if "memory" in template.names and not has_memory:
        problems.append("names {memory}: give Reasoner a memory, too")
    if problems:
        raise ReasonerError(f"prompt {'; '.join(problems)}")
    return partial(_filled, template)


def _filled(
    template: Template, question: Question, settings: PromptSettings, options: str, reply: str
) -> str:
    """Return the user's own prompt, with what a model needs in any case at its end."""
    chart, memory = question.chart, memory_of(question, settings.memory)
    fields: Mapping[str, Callable[[], str]] = {
        "name": lambda: name_of(question.agent),
        "persona": lambda: persona_of(question.agent, settings.attributes),
        "state": lambda: state_text(question.state),
        "trigger": lambda: question.trigger,
        "options": lambda: options,
        "chart": lambda: "" if chart is None else str(chart.name),
        "description": lambda: description_of(question),
        "situation": lambda: situation_of(question),
        "context": lambda: format_context(question.context),
        "memory": lambda: memory,
        "reply": lambda: reply,
    }
    objects: Mapping[str, Callable[[str], Any]] = {
        "agent": lambda name: attribute_of(question.agent, name),
        "context": lambda name: value_in([question.context], name, "the context"),
        "world": lambda name: value_in([question.parameters or {}], name, "the world"),
    }
    text = fill_fields(template, fields, objects)
    further = {"memory": memory, "options": f"Choose one of these:\n{options}", "reply": reply}
    missing = (part for name, part in further.items() if name not in template.names)
    return joined(text.rstrip(), *missing)


# Templates


class Template:
    """A text with ``{variables}``, which is parsed once and filled often.

    Nothing in it is evaluated, and variables are not replaced inside values.

    Args:
        text: The text.
        pattern: The pattern of a variable, with its name as the only group.
    """

    __slots__ = ("_parts", "names")

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        # literal, name, literal, name, ..., literal
        self._parts: list[str] = pattern.split(text)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self._parts[1::2]))

    def fill(self, variables: Mapping[str, str]) -> str:
        """Return the text with its variables filled in, of which each has a value."""
        parts = list(self._parts)
        parts[1::2] = [variables[name] for name in parts[1::2]]
        return "".join(parts)


def template_of(
    text: str, fields: Sequence[str], objects: Sequence[str]
) -> tuple[Template, list[str]]:
    """Return a template of fields, and what is wrong with it.

    Fields are ``{name}`` and ``{agent.age}``, perhaps with a format: ``{agent.age:.1f}``. Braces
    that begin with none of these words stay as they are, so a prompt may contain JSON.

    Args:
        text: The text.
        fields: The names of fields.
        objects: Names of objects, whose attributes are fields.
    """
    dotted = (rf"{each}\.[^\W\d_]\w*" for each in objects)
    name = "|".join((*fields, *dotted))
    pattern = re.compile(rf"\{{\s*((?:{name})(?::[^{{}}\n]*)?)\s*\}}")
    listed = ", ".join((*fields, *(f"{each}.<...>" for each in objects)))
    problems = [
        f"names {{{inside}}}, which is not a field: there are {listed}, each with a format or "
        "without, as in {agent.age:.1f}"
        for inside in _BRACES.findall(text)
        if not pattern.fullmatch(f"{{{inside}}}") and _is_nearly_a_field(inside, fields, objects)
    ]
    return Template(text, pattern), problems


def _is_nearly_a_field(inside: str, fields: Sequence[str], objects: Sequence[str]) -> bool:
    word = _FIRST_WORD.match(inside)
    return word is not None and (word[1] in {*fields, *objects} or word[0] == inside)


def fill_fields(
    template: Template,
    fields: Mapping[str, Callable[[], str]],
    objects: Mapping[str, Callable[[str], Any]],
) -> str:
    """Return a template's text with its fields filled in.

    Args:
        template: The template.
        fields: Functions that return the text of a field.
        objects: Functions that return an attribute of an object.

    Raises:
        ReasonerError: If an attribute does not exist, or its format does not fit.
    """
    texts = {}
    for name in template.names:
        field, _, form = name.partition(":")
        owner, _, attribute = field.partition(".")
        value = objects[owner](attribute) if attribute else fields[owner]()
        if not form:
            texts[name] = indented(in_words(value)) if attribute else value
            continue
        try:
            texts[name] = format(value, form)
        except (ValueError, TypeError) as error:
            raise ReasonerError(f"a prompt names {{{name}}}: {error}") from error

    return template.fill(texts)
