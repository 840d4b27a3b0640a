"""Parts of the page as HTML: sections, lists of events, tables, and links between its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import orjson
from markupsafe import Markup

from prism.drawing import showable
from prism.report._drawing import figure_spec

_MOST_CHARACTERS = 4000
_NOTHING = Markup("")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page.

    Args:
        anchor: Its id.
        heading: Its heading.
        explanation: How to read it; may be empty.
        html: What it shows.
    """

    anchor: str
    heading: str
    explanation: str
    html: Markup


@dataclass
class View:
    """A part of the page.

    Args:
        sections: Its sections, of which those with nothing to show are left out.
        figures: The figures that are drawn in them, by name.
        more: What else the page's script needs.
    """

    sections: Sequence[Section]
    figures: Mapping[str, alt.TopLevelMixin] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, which holds nothing that a page would run."""
        return {
            "sections": [
                {
                    "anchor": each.anchor,
                    "heading": each.heading,
                    "explanation": each.explanation,
                    "html": showable(str(each.html)),
                }
                for each in self.sections
                if each.html or each.explanation
            ],
            "figures": {f"figure-{name}": figure_spec(each) for name, each in self.figures.items()},
            **self.more,
        }


def cut(text: str) -> str:
    """Shorten a text for the page, without characters that HTML cannot represent."""
    left = len(text) - _MOST_CHARACTERS
    shown = text if left <= 0 else f"{text[:_MOST_CHARACTERS]}… ({left:,} characters more)"
    return showable(shown)


def link(kind: str, name: str | int | None, text: str | None = None) -> Markup:
    """Return a button that leads to an agent, post, round or page; without a name, the text."""
    shown = cut(text or str(name or ""))
    if name is None:
        return Markup.escape(shown)

    button = Markup('<button class="link" data-{}="{}">{}</button>')
    return button.format(Markup(kind), showable(str(name)), shown)


def with_links(text: str, posts: Iterable[str]) -> Markup:
    """Return a sentence in which the first mention of each post leads to it."""
    shown, links = cut(text), _NOTHING
    for post in posts:
        before, mention, rest = shown.partition(cut(post))
        if mention:
            links, shown = links + before + link("post", post), rest

    return links + shown


def posts_in(event: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the posts that an event names."""
    about = object_in(event, "context").get("post_id")
    named = (event.get("post_id"), event.get("parent_id"), about)
    return tuple(dict.fromkeys(post for post in named if isinstance(post, str) and post))


def object_in(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object that an event has under a name; an empty one if it has none."""
    value = event.get(name)
    value = orjson.loads(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else {}


def event_list(items: Iterable[tuple[str, Markup]]) -> Markup:
    """Return a list of events, each with when it happened; nothing if there is none."""
    lines = _NOTHING.join(
        Markup('<li><span class="soft">{}</span> {}</li>').format(*each) for each in items
    )
    return lines and Markup('<ol class="happened tall" tabindex="0">{}</ol>').format(lines)


def table(rows: Sequence[Mapping[str, Any]], headings: Mapping[str, str] | None = None) -> Markup:
    """Return rows as a table, without the columns in which no row has a value."""
    if not rows:
        return _NOTHING

    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    heads = [
        Markup('<th scope="col">{}</th>').format(
            (headings or {}).get(name, cut(name).replace("_", " "))
        )
        for name in names
    ]
    return framed("", heads, [[cell(row[name]) for name in names] for row in rows])


def framed(name: str, heads: Iterable[Markup], rows: Iterable[Iterable[Markup]]) -> Markup:
    """Return cells as a table that scrolls, with an id."""
    body = _NOTHING.join(Markup("<tr>{}</tr>").format(_NOTHING.join(row)) for row in rows)
    frame = '<div class="scroll" tabindex="0"><table id="{}"><thead><tr>{}</tr></thead><tbody>{}'
    return Markup(frame + "</tbody></table></div>").format(name, _NOTHING.join(heads), body)


def cell(value: Any) -> Markup:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Markup('<td class="number">{}</td>').format(number(value))
    if isinstance(value, Markup):
        return Markup("<td>{}</td>").format(value)
    return Markup("<td>{}</td>").format("" if value is None else cut(str(value)))


def number(value: float) -> str:
    """Return a whole number in full, another with four digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
