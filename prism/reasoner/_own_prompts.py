"""The user's own prompts: templates and functions, for each chart and state; values in words.

A template has ``{names}``. It is parsed once and filled often, and nothing in it is evaluated.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any

from prism.errors import FieldValueError, ReasonerError
from prism.reasoner._questions import Question
from prism.statechart.names import agent_name, identify
from prism.statechart.states import state_text

NAME: re.Pattern[str] = re.compile(r"\{([^\W\d]\w*)\}")
DOTTED_NAME: re.Pattern[str] = re.compile(r"\{([^\W\d]\w*(?:\.\w+)*)\}")
"""A name, or an attribute such as ``{agent.age}``; longer chains are refused later."""

_BRACES = re.compile(r"\{([^{}\n]{1,200})\}")
_WORD = re.compile(r"\s*([^\W\d]\w*)")

_LARGE = 1e15
"""Numbers from here on have an exponent in a prompt."""

MAX_CHARACTERS = 4_000_000
"""Maximum length of a prompt, since a few lines can name a long variable many times."""


class PromptError(ValueError):
    """A prompt cannot be filled."""


class Template:
    """A text with ``{variables}``.

    Only names in braces are variables, without formats or chains of attributes, so a prompt may
    contain JSON. Variables are not replaced inside values.

    Args:
        text: The text.
        pattern: The pattern of a variable, with its name as the only group.
    """

    __slots__ = ("_parts", "names", "text")

    def __init__(self, text: str, pattern: re.Pattern[str] = NAME) -> None:
        self.text = text
        # literal, name, literal, name, ..., literal
        self._parts: list[str] = pattern.split(text)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self._parts[1::2]))

    def fill(
        self, variables: Mapping[str, Any], shown: Callable[[Any], str] = str
    ) -> tuple[str, list[str]]:
        """Return the text with its variables filled in, and the names without a variable.

        Args:
            variables: Values by name. Each is looked up once, however often it is named.
            shown: Returns the text of a value in the prompt.

        Raises:
            PromptError: If the prompt is too long.
        """
        if not self.names:
            return self._parts[0], []

        known = {name: shown(variables[name]) for name in self.names if name in variables}
        filled = list(self._parts)
        for number in range(1, len(filled), 2):
            name = filled[number]
            filled[number] = known.get(name, f"{{{name}}}")

        if sum(map(len, filled)) > MAX_CHARACTERS:
            longest = max(known, key=lambda name: len(known[name]))
            raise PromptError(
                f"the prompt has more than {MAX_CHARACTERS:,} characters, "
                f"{len(known[longest]):,} of them in the variable {longest!r}: shorten it"
            )

        return "".join(filled), [name for name in self.names if name not in known]


Prompt = str | Callable[[Question], str]
"""A template, or a function that returns the prompt."""

Prompts = Prompt | Mapping[Any, Prompt | Mapping[Any, Prompt]]
"""A prompt, or prompts by chart name or state; those of a chart may be by state."""

OwnPrompt = Template | Callable[[Question], str]
"""A stored prompt, its template parsed."""

PROMPT_LOGGER: logging.Logger = logging.getLogger("prism.statechart.prompts")
"""The logger for warnings about prompts that are given once and change no log."""

FIELDS = (
    *("name", "persona", "state", "trigger", "options", "chart", "description", "situation"),
    *("context", "memory", "reply"),
)
"""The fields of a template, besides those of agent, context and world."""

_OPEN: Mapping[str, Callable[[Question, str], str]] = {
    "agent": lambda question, name: attribute_of(question.agent, name),
    "context": lambda question, name: key_of(question.context, name),
    "world": lambda question, name: parameter_of(question.parameters, name),
}
"""The objects for fields such as ``{agent.age}``, which are checked with the first question."""

KNOWN = ", ".join((*FIELDS, *(f"{name}.<...>" for name in _OPEN)))


def value_of(name: str, question: Question, makers: Mapping[str, Callable[[], str]]) -> str:
    """Return a field of a question; one without a dot is built.

    Raises:
        ReasonerError: If the agent, the context or the world has no such name.
    """
    whose, _, own = name.partition(".")
    return _OPEN[whose](question, own) if own else makers[name]()


class OwnPrompts:
    """The prompts that a `Reasoner` was given.

    Args:
        given: A template or a function, or a mapping of those: by the name of a chart, by a state,
            or by the name of a chart and then by state.
        has_memory: Whether templates may name the memory.

    Raises:
        ReasonerError: If a template names an unknown field, or something is not a prompt; the
            message lists all problems.
    """

    def __init__(self, given: Prompts, *, has_memory: bool) -> None:
        self._problems: list[str] = []
        self._has_memory = has_memory
        self._checked: set[str] = set()
        self._all: OwnPrompt | None = None
        self._by_state: dict[tuple[type, Any], Any] = {}
        self._by_chart: dict[str, Any] = {}
        if isinstance(given, Mapping):
            self._read_mapping(given)
        else:
            self._all = self._read(given, "prompt")

        if self._problems:
            raise ReasonerError("; ".join(self._problems))

    def of(self, question: Question) -> OwnPrompt | None:
        """Return the prompt for a question; None for the default one.

        Raises:
            ReasonerError: If the prompts are by chart and the question's chart is unknown, or if
                they name states in which its chart asks nothing.
        """
        if self._all is not None:
            return self._all

        by_state = self._by_state.get((type(question.state), question.state))
        if by_state is not None or not self._by_chart:
            return by_state

        chart = question.chart
        if chart is None:
            raise ReasonerError(
                f"agent {agent_name(question.agent)!r} is asked without a chart, so its "
                "chart's prompt cannot be found: give prompts by state, {Mood.CALM: '...'}"
            )

        found = self._by_chart.get(chart.name)
        if chart.name not in self._checked:
            self._checked.add(chart.name)
            self._look_at(chart, found)

        return found.get(state_text(question.state)) if isinstance(found, dict) else found

    def _read_mapping(self, given: Mapping[Any, Any]) -> None:
        for key, value in given.items():
            if isinstance(key, Enum):
                self._by_state[type(key), key] = self._read(value, f"prompt of {key!r}")
            elif not isinstance(key, str):
                self._problems.append(f"prompts must be by chart name or state, got {key!r}")
            elif isinstance(value, Mapping):
                self._by_chart[key] = {
                    state_text(state): self._read(prompt, f"prompt of {key!r}, {state!r}")
                    for state, prompt in value.items()
                }
            else:
                self._by_chart[key] = self._read(value, f"prompt of {key!r}")

    def _read(self, given: Any, what: str) -> OwnPrompt | None:
        if not isinstance(given, str):
            if not callable(given):
                self._problems.append(
                    f"{what} must be a template or a function of the question, got {given!r}"
                )
                return None
            function: Callable[[Question], str] = given
            return function

        if not given.strip():
            self._problems.append(f"{what} is empty: omit it to use the default")

        template = Template(given, DOTTED_NAME)
        unknown = [name for name in template.names if not _is_field(name)]
        if unknown:
            listed = ", ".join(f"{{{name}}}" for name in unknown)
            self._problems.append(f"{what} names {listed}, which is not a field: there are {KNOWN}")
        for near in filter(_is_nearly_a_field, _BRACES.findall(given)):
            self._problems.append(
                f"{what} has {{{near}}}, which is nearly a field: write {{{_first_word(near)}}} or "
                f"{{{_first_word(near)}.<name>}}, without spaces, formats, indexes or calls"
            )
        if "memory" in template.names and not self._has_memory:
            self._problems.append(f"{what} names {{memory}}: give Reasoner a memory, too")

        return template

    def _look_at(self, chart: Any, found: Any) -> None:
        """Report prompts that are never used, and charts with the default prompt."""
        if found is None:
            PROMPT_LOGGER.warning(
                "questions of chart %r get the default prompt: there are prompts only for %s",
                chart.name,
                ", ".join(self._by_chart),
            )
            return

        asking = [state_text(state) for state in chart.states if state in chart.decision_states]
        never = [state for state in found if state not in asking] if isinstance(found, dict) else []
        if never:
            raise ReasonerError(
                f"there are prompts for {', '.join(never)} of chart {chart.name!r}, which asks in "
                f"{', '.join(asking)} only"
            )


def _first_word(text: str) -> str:
    word = _WORD.match(text)
    return "" if word is None else word[1]


def _is_nearly_a_field(text: str) -> bool:
    """Return whether what stands in braces begins with a field, and is none."""
    is_name = DOTTED_NAME.fullmatch(f"{{{text}}}") is not None
    return not is_name and _first_word(text) in {*FIELDS, *_OPEN}


def _is_field(name: str) -> bool:
    whose, _, own = name.partition(".")
    if not own:
        return name in FIELDS

    # no chains of attributes, and nothing private
    return whose in _OPEN and own.isidentifier() and not own.startswith("_")


# Values in words

_TELLING = (str, int, float, Enum, list, tuple, dict, type(None))


def attribute_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the attributes for prompts; a single text names one.

    Raises:
        FieldValueError: If one of them is not a name.
    """
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise FieldValueError(f"attributes must be names of attributes, got {name!r}")

    return names


def attribute_lines(agent: Any, attributes: Sequence[str]) -> list[str]:
    """Return attributes of an agent as lines such as ``age: 34``.

    Raises:
        ReasonerError: If it has no such attribute, or the value cannot be put in words.
    """
    return [f"{name.replace('_', ' ')}: {attribute_of(agent, name)}" for name in attributes]


def attribute_of(agent: Any, name: str) -> str:
    """Return an attribute of an agent in words: from its ``attributes``, or else its own.

    Raises:
        ReasonerError: If there is none, or the value cannot be put in words.
    """
    return _told(_sources_of(agent), name, f"agent {agent_name(agent)!r}")


def key_of(context: Any, name: str) -> str:
    """Return a key or an attribute of an event's context in words.

    Raises:
        ReasonerError: As `attribute_of`.
    """
    return _told([context], name, "the context")


def parameter_of(parameters: Mapping[str, Any] | None, name: str) -> str:
    """Return a parameter of the world in words.

    Raises:
        ReasonerError: If there is none.
    """
    return _told([parameters or {}], name, "the world")


def in_words(value: Any) -> str:
    """Return a value in words: numbers with all of their digits, lists with commas."""
    for kinds, tell in _IN_WORDS:
        if isinstance(value, kinds):
            return tell(value)

    return in_words(list((identify(value) or {}).values()))


def number_in_words(number: float) -> str:
    """Return a number with the fewest digits that are exact, and no exponent below 1e15."""
    text = repr(number)
    if not isfinite(number) or abs(number) >= _LARGE:
        return text
    return format(Decimal(text), "f").removesuffix(".0")


def _member_in_words(member: Enum) -> str:
    return state_text(member) if isinstance(member, str) else in_words(member.value)


def _mapping_in_words(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(f"{in_words(key)}: {in_words(item)}" for key, item in mapping.items())


_IN_WORDS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Enum, _member_in_words),
    (bool, lambda value: "yes" if value else "no"),
    (float, number_in_words),
    (Mapping, _mapping_in_words),
    ((set, frozenset), lambda value: ", ".join(sorted(map(in_words, value)))),
    ((list, tuple), lambda value: ", ".join(map(in_words, value))),
    (type(None), lambda _: "none"),
    ((str, int), str),
)
"""The wording of each kind of value; enum members and truth values may also be texts or numbers."""


def _sources_of(agent: Any) -> list[Any]:
    own = getattr(agent, "attributes", None)
    return [own, agent] if isinstance(own, Mapping) else [agent]


def _told(sources: Sequence[Any], name: str, whose: str) -> str:
    for source in sources:
        if isinstance(source, Mapping):
            if name in source:
                return in_words(source[name])
        elif not name.startswith("_") and hasattr(source, name):
            value = getattr(source, name)
            if not callable(value):
                return in_words(value)

    names = dict.fromkeys(each for source in sources for each in _names_in(source))
    known = ", ".join(names) or "nothing"
    raise ReasonerError(f"a prompt names {name!r}, which {whose} does not have: it has {known}")


def _names_in(source: Any) -> list[str]:
    """Return the names of values that can be put in words."""
    if isinstance(source, Mapping):
        return [str(name) for name in source]

    return [name for name in dir(source) if not name.startswith("_") and _is_telling(source, name)]


def _is_telling(source: Any, name: str) -> bool:
    try:
        return isinstance(getattr(source, name), _TELLING)
    except Exception:  # a property of the user's class, such as that of a detached database row
        return False
