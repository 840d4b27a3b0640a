"""Recorded prompts: what the model was asked and said where a choice is worth a look."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote
from typing import Any

from markupsafe import Markup

from prism.drawing import showable
from prism.files._records import shown_path
from prism.report._facts.recorded import Recorded
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures
from prism.runlog._prompts import choice_text

EXPLANATION = (
    "The prompts and replies of the first decisions that fell back, and of those in which the "
    "model's own probabilities favoured another option most. They hold what agents were told: "
    "this page is as private as they are. The command shows a decision in full."
)
NOTHING = "No prompt was recorded, or no decision stands out."

_MOST_CHARACTERS = 4000


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:  # noqa: ARG001
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Not used: the section has no figure.
    """
    if not facts.recorded:
        return None

    return Markup("").join(_shown(recorded) for recorded in facts.recorded)


def _shown(recorded: Recorded) -> Markup:
    event = recorded.event
    command = f"prism log decision {quote(shown_path(recorded.folder))} {quote(recorded.id)}"
    asked = f"{event.get('state')} on {event.get('trigger')}"
    title = f"{recorded.id}: {asked}, chose {event.get('chosen')}; {recorded.why}"
    parts = Markup("").join(
        Markup("<p>{}</p><pre>{}</pre>").format(heading, _cut(text))
        for heading, text in _texts(recorded)
    )

    return Markup("<details><summary>{}</summary><p><code>{}</code></p>{}</details>").format(
        _cut(title), _cut(command), parts
    )


def _texts(recorded: Recorded) -> Iterator[tuple[str, str]]:
    record = recorded.record
    if recorded.event.get("reason"):
        yield "Reason", str(recorded.event["reason"])
    if record.get("prompt") is not None:
        yield "Prompt", str(record["prompt"])

    question = choice_text(record)
    if question is not None:
        yield "Question", question
    if record.get("reply") is not None:
        yield "Reply", _as_text(record["reply"])

    for number, attempt in enumerate(record.get("attempts", []), start=1):
        if attempt.get("fault"):
            yield f"Attempt {number} failed", str(attempt["fault"])


def _as_text(reply: Any) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply, indent=1, ensure_ascii=False)


def _cut(text: str) -> str:
    """Shorten a text to what a page has room for, without what HTML cannot hold."""
    left = len(text) - _MOST_CHARACTERS
    shown = text if left <= 0 else f"{text[:_MOST_CHARACTERS]}… ({left:,} characters more)"
    return showable(shown)
