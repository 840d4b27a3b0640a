"""Faults, and recorded prompts of decisions that are worth a look."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote
from typing import Any

import polars as pl
from markupsafe import Markup

from prism.drawing import showable
from prism.files._records import shown_path
from prism.report._facts.run_facts import Recorded, RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.kinds import Kind

_MOST_FAULTS = 20
_SENTENCES = {
    "guard_failed": ("guard failed", "guards failed"),
    "action_failed": ("action failed", "actions failed"),
    "step_failed": ("step failed", "steps failed"),
    "text_failed": ("text failed", "texts failed"),
    "reply_unusable": ("reply was of no use", "replies were of no use"),
    "action_refused": ("action was refused", "actions were refused"),
    "state_reset": ("state was unknown", "states were unknown"),
    "transition_refused": ("transition was refused", "transitions were refused"),
    "answer_discarded": ("answer was discarded", "answers were discarded"),
    "fallback": ("decision took the fallback", "decisions took the fallback"),
}
_COLUMNS = ("fault", "chart", "from_state", "to_state", "trigger", "error", "count", "agents")
_HEADINGS = {"from_state": "from", "to_state": "to", "first": "first in"}


def _faults(facts: RunFacts, name: str, _figures: PageFigures) -> Markup | None:
    if facts.faults.is_empty():
        return None

    listed = _listed(facts.faults, facts.unit)
    return Markup('<div class="notes faults" role="note"><b>{}</b></div>{}').format(
        summary(facts.faults),
        html_table(f"faults-{name}", listed, _HEADINGS, most=_MOST_FAULTS),
    )


FAULTS = Kind(
    "faults",
    "What went wrong",
    "A transition is not enabled if its guard fails. If its action fails, it is made "
    "nevertheless. The log has the traceback of each fault.",
    "The log has no faults.",
    _faults,
)


def summary(faults: pl.DataFrame) -> str:
    """Return one line with the number of faults of each kind.

    Args:
        faults: The table of faults.
    """
    counts = faults.group_by("fault", maintain_order=True).agg(pl.col("count").sum())
    parts = []
    for fault, count in counts.iter_rows():
        one, many = _SENTENCES.get(fault, (fault.replace("_", " "),) * 2)
        parts.append(f"{count:,} {one if count == 1 else many}")

    return ", ".join(parts)


def _listed(faults: pl.DataFrame, unit: str) -> pl.DataFrame:
    """Leave out columns without values, and add when each fault first happened."""
    kept = [name for name in _COLUMNS if name in faults.columns]
    kept = [name for name in kept if faults[name].null_count() < faults.height]
    first = pl.when(pl.col("round").is_not_null()).then(
        pl.format(f"{unit} {{}}, tick {{}}", "round", pl.col("tick").fill_null(0))
    )

    return faults.select(
        *kept, first.otherwise(pl.format("line {}", "line")).alias("first")
    ).with_columns(pl.col("fault").str.replace_all("_", " ", literal=True))


_MOST_CHARACTERS = 4000


def _recorded(facts: RunFacts, _name: str, _figures: PageFigures) -> Markup | None:
    return Markup("").join(map(_shown, facts.recorded)) if facts.recorded else None


RECORDED = Kind(
    "prompts",
    "Prompts worth a look",
    "Prompts and replies of the first fallbacks, and of decisions against the model's own "
    "preference. They contain what agents were told, so keep this page as private as they are. "
    "The command shows a decision in full.",
    "No prompt was recorded, or no decision stands out.",
    _recorded,
)


def _shown(recorded: Recorded) -> Markup:
    event = recorded.event
    command = f"prism log decision {quote(recorded.id)} {quote(shown_path(recorded.folder))}"
    asked = f"{event.get('state')} on {event.get('trigger')}"
    title = f"{recorded.id}: {asked}, chose {event.get('chosen')}; {recorded.why}"
    parts = Markup("").join(
        Markup("<p>{}</p><pre>{}</pre>").format(heading, cut(text))
        for heading, text in texts_of(recorded)
    )

    return Markup("<details><summary>{}</summary><p><code>{}</code></p>{}</details>").format(
        cut(title), cut(command), parts
    )


def texts_of(recorded: Recorded) -> Iterator[tuple[str, str]]:
    """Yield the record of a decision: headings and texts."""
    record = recorded.record
    if recorded.event.get("reason"):
        yield "Reason", str(recorded.event["reason"])
    if record.get("prompt") is not None:
        yield "Prompt", str(record["prompt"])

    if record.get("reply") is not None:
        yield "Reply", _as_text(record["reply"])

    for number, attempt in enumerate(record.get("attempts", []), start=1):
        if attempt.get("fault"):
            yield f"Attempt {number} failed", str(attempt["fault"])


def _as_text(reply: Any) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply, indent=1, ensure_ascii=False)


def cut(text: str) -> str:
    """Shorten a text for the page, without characters that HTML cannot represent."""
    left = len(text) - _MOST_CHARACTERS
    shown = text if left <= 0 else f"{text[:_MOST_CHARACTERS]}… ({left:,} characters more)"
    return showable(shown)
