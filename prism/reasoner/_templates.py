"""Prompts of the user's own: templates with fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner.prompts import (
    Briefing,
    WritePrompt,
    attribute_of,
    in_words,
    indented,
    joined,
    value_in,
)
from prism.statechart.states import state_text

_FIELDS = (
    "name", "persona", "state", "trigger", "options", "chart", "description", "situation",
    "context", "memory", "reply",
)  # fmt: skip
_OBJECTS = ("agent", "context", "world")
"""Fields, and objects whose attributes are fields."""

_NAMES = "|".join((*_FIELDS, *(rf"{each}\.[^\W\d_]\w*" for each in _OBJECTS)))
_FIELD = re.compile(rf"\{{\s*((?:{_NAMES})(?::[^{{}}\n]*)?)\s*\}}")
_BRACES = re.compile(r"\{([^{}\n]{1,200})\}")
_FIRST_WORD = re.compile(r"[\s%#$]*([^\W\d]\w*)[\w.]*")


def user_prompt(prompt: str | None, *, has_memory: bool) -> WritePrompt | None:
    """Return what writes the user's own prompt, a template.

    Fields are ``{name}`` and ``{agent.age}``, perhaps with a format: ``{agent.age:.1f}``. Braces
    that begin with none of these words stay as they are, so a prompt may contain JSON. Nothing in
    it is evaluated, and fields are not replaced inside values.

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

    # literal, field, literal, field, ..., literal
    parts = _FIELD.split(prompt)
    listed = ", ".join((*_FIELDS, *(f"{each}.<...>" for each in _OBJECTS)))
    problems = [
        f"names {{{inside}}}, which is not a field: there are {listed}, each with a format or "
        "without, as in {agent.age:.1f}"
        for inside in _BRACES.findall(prompt)
        if not _FIELD.fullmatch(f"{{{inside}}}") and _is_nearly_a_field(inside)
    ]
    if not prompt.strip():
        problems.append("is empty: omit it to use the default")
    if "memory" in parts[1::2] and not has_memory:
        problems.append("names {memory}: give Reasoner a memory, too")
    if problems:
        raise ReasonerError(f"prompt {'; '.join(problems)}")
    return partial(_filled, parts)


def _is_nearly_a_field(inside: str) -> bool:
    word = _FIRST_WORD.match(inside)
    return word is not None and (word[1] in {*_FIELDS, *_OBJECTS} or word[0] == inside)


def _filled(parts: Sequence[str], briefing: Briefing, options: str, reply: str) -> str:
    """Return the user's own prompt, with what a model needs in any case at its end.

    Raises:
        ReasonerError: If an attribute does not exist, or its format does not fit.
    """
    question = briefing.question
    fields = {
        "state": state_text(question.state),
        "trigger": question.trigger,
        "chart": "" if question.chart is None else str(question.chart.name),
        "options": options,
        "reply": reply,
    }
    objects: Mapping[str, Callable[[str], Any]] = {
        "agent": lambda name: attribute_of(question.agent, name),
        "context": lambda name: value_in([question.context], name, "the context"),
        "world": lambda name: value_in([question.parameters or {}], name, "the world"),
    }

    def text_of(name: str) -> str:
        field, _, form = name.partition(":")
        owner, _, attribute = field.partition(".")
        if attribute:
            value = objects[owner](attribute)
        else:
            value = fields[owner] if owner in fields else getattr(briefing, owner)
        if not form:
            return indented(in_words(value)) if attribute else str(value)
        try:
            return format(value, form)
        except (ValueError, TypeError) as error:
            raise ReasonerError(f"a prompt names {{{name}}}: {error}") from error

    text = "".join(text_of(each) if index % 2 else each for index, each in enumerate(parts))
    listed = f"Choose one of these:\n{options}"
    further = {"memory": briefing.memory, "options": listed, "reply": reply}
    missing = (part for name, part in further.items() if name not in parts[1::2])
    return joined(text.rstrip(), *missing)
