"""The user's own prompts: templates and functions, for each chart and state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner._questions import Question
from prism.reasoner._words import Template, template_of
from prism.statechart.names import agent_name
from prism.statechart.states import state_text

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
OBJECTS = ("agent", "context", "world")
"""The objects whose attributes are fields, which are checked with the first question."""


class OwnPrompts:
    """The prompts of a `Reasoner`.

    Args:
        prompts: A template or a function, or a mapping of those: by the name of a chart, by a
            state, or by the name of a chart and then by state.
        has_memory: Whether templates may name the memory.

    Raises:
        ReasonerError: If a template names an unknown field, or something is not a prompt; the
            message lists all problems.
    """

    def __init__(self, prompts: Prompts, *, has_memory: bool) -> None:
        self._problems: list[str] = []
        self._has_memory = has_memory
        self._checked: set[str] = set()
        self._all: OwnPrompt | None = None
        self._by_state: dict[tuple[type, Any], Any] = {}
        self._by_chart: dict[str, Any] = {}
        if isinstance(prompts, Mapping):
            self._read_mapping(prompts)
        else:
            self._all = self._read(prompts, "prompt")

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

        own = self._by_chart.get(chart.name)
        if chart.name not in self._checked:
            self._checked.add(chart.name)
            self._check_states(chart, own)
        return own.get(state_text(question.state)) if isinstance(own, dict) else own

    def _read_mapping(self, prompts: Mapping[Any, Any]) -> None:
        for key, value in prompts.items():
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

    def _read(self, prompt: Any, what: str) -> OwnPrompt | None:
        if callable(prompt):
            function: Callable[[Question], str] = prompt
            return function
        if not isinstance(prompt, str):
            problem = f"must be a template or a function of the question, got {prompt!r}"
            self._problems.append(f"{what} {problem}")
            return None

        template, problems = template_of(prompt, FIELDS, OBJECTS)
        if not prompt.strip():
            problems.append("is empty: omit it to use the default")
        if "memory" in template.names and not self._has_memory:
            problems.append("names {memory}: give Reasoner a memory, too")
        self._problems += [f"{what} {problem}" for problem in problems]
        return template

    def _check_states(self, chart: Any, own: Any) -> None:
        """Report prompts that are never used, and charts with the default prompt."""
        if own is None:
            charts = ", ".join(self._by_chart)
            problem = "questions of chart %r get the default prompt: there are prompts only for %s"
            PROMPT_LOGGER.warning(problem, chart.name, charts)
            return

        deciding = [state_text(state) for state in chart.states if state in chart.decision_states]
        never = [state for state in own if state not in deciding] if isinstance(own, dict) else []
        if never:
            raise ReasonerError(
                f"there are prompts for {', '.join(never)} of chart {chart.name!r}, which asks in "
                f"{', '.join(deciding)} only"
            )
