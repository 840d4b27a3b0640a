"""One agent as a part of the page, or one thread: what was done, and why that was possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from prism.analysis._tables.cascades import TreePost, told_of
from prism.drawing import draw_svg, showable
from prism.drawing._levels import Levels
from prism.report._facts.run_facts import Recorded, RunFacts
from prism.report._figures.html_table import html_table
from prism.report._sections.cascades import thread_of
from prism.report._sections.diagram import diagram_of
from prism.report._sections.faults import cut, texts_of
from prism.report._sections.kinds import Section
from prism.runlog._words import in_words
from prism.telemetry.events import DECISION, POST_WEIGHED, TRANSITION
from prism.watch._looking import Doings, post_ids

_MOST_STORY = 300
_EMPTY = Markup("")
_WHY_OPEN = (
    "Beside each option is the transition of the chart that leads there. It was enabled, so the "
    "condition in brackets held."
)
_IN_TICKS = "Ticks from entering a state to leaving it."


@dataclass(frozen=True)
class AgentPage:
    """The page of one agent: what it did in one round and in all.

    Args:
        agent: The agent.
        doings: What it did.
        facts: The facts of its run, with the charts; None if there are none yet.
        number: The round that is looked at; None in a log without rounds.
        unit: What a round of this run is called.
    """

    agent: str
    doings: Doings
    facts: RunFacts | None
    number: int | None
    unit: str

    def sections(self) -> Iterator[Section]:
        """Yield its sections, those of the round first."""
        story = self.doings.story
        is_here = pl.col("round").eq_missing(pl.lit(self.number, pl.Int64))
        then, passed = story.filter(is_here), self.doings.passed.filter(is_here)
        here, others = self.doings.here, self.doings.others
        when = "" if self.number is None else f" in {self.unit} {self.number:,}"
        parts = [
            ("then", f"What it did{when}", "", self._then(story, then) if when else _EMPTY),
            ("asked", f"What it was asked{when}", _WHY_OPEN, self._asked(here)),
            ("passed", f"Posts that it let pass{when}", "", self._passed(passed)),
            ("way", "Its path on the chart", "", self._way(story)),
            ("dwell", "How long it stayed in each state", _IN_TICKS, self._dwelling(story)),
            ("others", "What else it was asked", "The last first.", self._asked(others[::-1])),
            ("story", "All that it did", "", self._told(story)),
        ]
        for anchor, heading, explanation, html in parts:
            if html:
                yield Section(anchor, heading, explanation, [html])

    def _then(self, story: pl.DataFrame, then: pl.DataFrame) -> Markup:
        """Write what the agent did in the round, and lead to the rounds beside it."""
        known = story["round"].drop_nulls().unique().sort().to_list()
        before = [each for each in known if each < (self.number or 0)][-1:]
        after = [each for each in known if each > (self.number or 0)][:1]
        ways = _EMPTY.join(
            Markup('<button type="button" data-round="{}">{} {:,}</button> ').format(
                each, self.unit.capitalize(), each
            )
            for each in (*before, *after)
        )
        done = self._told(then) or Markup('<p class="soft">Nothing.</p>')
        return done + Markup('<p class="tools">{}</p>').format(ways)

    def _told(self, rows: pl.DataFrame) -> Markup:
        last = rows.tail(_MOST_STORY).reverse()
        told = happened_list(
            (self._when(row), with_links(row["what"], post_ids(row)))
            for row in last.iter_rows(named=True)
        )
        if rows.height > last.height:
            more = Markup('<p class="soft">The last {:,} of {:,} events.</p>')
            return more.format(last.height, rows.height) + told

        return told

    def _when(self, row: Mapping[str, Any]) -> str:
        named = (
            f"{word} {row[name]:,}"
            for name, word in (("round", self.unit), ("tick", "tick"))
            if isinstance(row.get(name), int)
        )
        return ", ".join(named)

    def _passed(self, rows: pl.DataFrame) -> Markup:
        """Write why posts of the round were let pass, as ``prism log why`` does."""
        return happened_list(
            (
                f"tick {row['tick']}",
                Markup("{}: {}{}").format(
                    _link("post", row["post_id"]), cut(row["why"]), self._text(row["post_id"])
                ),
            )
            for row in rows.filter(pl.col("source").is_null()).iter_rows(named=True)
        )

    def _text(self, post: str | None) -> Markup:
        author, text = self.doings.posts.get(post or "", ("", ""))
        return Markup("<br>{}: {}").format(agent_link(author), cut(text)) if author else _EMPTY

    def _way(self, story: pl.DataFrame) -> Markup:
        own = story.filter(agent_id=self.agent, event=TRANSITION)
        rows = own.drop_nulls(["from_state", "to_state"]).select("from_state", "to_state").rows()
        counts = Counter((showable(source), showable(target)) for source, target in rows)
        facts = self.facts
        if facts is None or not counts:
            return _EMPTY

        for chart in facts.chart_names:
            diagram = diagram_of(chart, [facts])
            states, traffic = set(diagram.states), Levels(diagram).traffic(counts)
            its = {ends: count for ends, count in traffic.items() if states.issuperset(ends)}
            if its:
                svg = Markup(draw_svg(diagram, its))
                return Markup('<div class="scroll" tabindex="0">{}</div>').format(svg)

        return _EMPTY

    def _dwelling(self, story: pl.DataFrame) -> Markup:
        # events at rates have no whole ticks
        length = "rounds_in_state" if "rounds_in_state" in story.columns else "ticks_in_state"
        ticks = pl.col(length)
        visits = story.filter(agent_id=self.agent, event=TRANSITION).drop_nulls(length)
        if visits.is_empty():
            return _EMPTY

        table = visits.group_by(state="from_state", maintain_order=True).agg(
            visits=pl.len(), mean=ticks.mean(), longest=ticks.max()
        )
        names = pl.col("state").map_elements(showable, return_dtype=pl.String)
        return html_table("agent-dwell", table.with_columns(names))

    def _asked(self, asked: Sequence[Recorded]) -> Markup:
        return _EMPTY.join(map(self._decision, asked))

    def _decision(self, asked: Recorded) -> Markup:
        """Write a decision or a text with all that is known of it."""
        event = asked.event
        if event.get("event") == DECISION:
            what = f"{event.get('state')} on {event.get('trigger')}: {event.get('chosen')}"
        else:
            what = f"a text for {event.get('key')}"
        title = f"{self._when(event)}: {what} ({event.get('source')})"

        texts = dict(texts_of(asked))
        for name in ("said", "text"):
            if isinstance(event.get(name), str):
                texts.setdefault(name.capitalize(), event[name])
        parts = _EMPTY.join(
            Markup("<p>{}</p><pre>{}</pre>").format(heading, cut(text))
            for heading, text in texts.items()
        )

        return Markup("<details><summary>{}</summary>{}{}{}{}</details>").format(
            cut(title), self._about(asked), self._options(event), _asked_how(event), parts
        )

    def _about(self, asked: Recorded) -> Markup:
        """Write what a decision was about: a post with its text, or else its context."""
        event, about = asked.event, asked.event.get("context")
        posts = [post for post in post_ids(event) if post in self.doings.posts]
        if posts:
            return _EMPTY.join(
                Markup("<p>About {}{}{}</p>").format(
                    _link("post", post), self._weighed(event, post), self._text(post)
                )
                for post in posts
            )
        if not isinstance(about, dict) or not about:
            return _EMPTY

        return Markup("<p>About</p><pre>{}</pre>").format(cut(in_words(about)))

    def _weighed(self, event: Mapping[str, Any], post: str) -> str:
        """Say what the agent made of a post before it decided about it."""
        weighed = self.doings.story.filter(event=POST_WEIGHED, post_id=post)
        then = pl.all_horizontal(
            pl.col(name).eq_missing(pl.lit(event.get(name), pl.Int64)) for name in ("round", "tick")
        )
        known = weighed.filter(then).drop_nulls(["relevance", "threshold"])
        for relevance, threshold in known.select("relevance", "threshold").tail(1).iter_rows():
            return f" (relevance {relevance:.3g}, threshold {threshold:.3g})"

        return ""

    def _options(self, event: Mapping[str, Any]) -> Markup:
        options, chances = event.get("options"), event.get("probabilities")
        if not isinstance(options, list):
            return _EMPTY

        known = chances if isinstance(chances, dict) else {}
        rows = _EMPTY.join(
            Markup("<li>{}{} {} <span class='soft'>{}</span></li>").format(
                cut(option),
                f" {known[option]:.1%}" if isinstance(known.get(option), float | int) else "",
                Markup("<b>chosen</b>") if option == event.get("chosen") else "",
                cut(", ".join(self._conditions(event, option))),
            )
            for option in options
            if isinstance(option, str)
        )
        return Markup('<ul class="options">{}</ul>').format(rows)

    def _conditions(self, event: Mapping[str, Any], option: str) -> Iterator[str]:
        """Yield the transitions of the chart that lead to an option, as the chart writes them."""
        if self.facts is None:
            return

        state, trigger = str(event.get("state")), str(event.get("trigger"))
        charts = self.facts.charts
        for name in filter(charts.__contains__, map(str, self.facts.chart_names)):
            labels = Levels(charts[name]).labels(state, option)
            yield from (label for label in labels if label.startswith(trigger))


def _asked_how(event: Mapping[str, Any]) -> Markup:
    names = ("model", "option_mass", "latency", "queue_seconds", "attempts", "input_tokens")
    told = (
        f"{name.replace('_', ' ')} {event[name]:.4g}"
        if type(event[name]) is float
        else f"{name.replace('_', ' ')} {event[name]}"
        for name in (*names, "output_tokens")
        if event.get(name) is not None
    )
    return Markup('<p class="soft">{}</p>').format(cut(", ".join(told)))


def thread_page(tree: tuple[TreePost, ...], chosen: str) -> Section:
    """Return a thread as people read it.

    Args:
        tree: Its posts, the root first.
        chosen: The post that led to it.
    """

    def named(post: TreePost) -> Markup:
        mark = Markup(" <b>this post</b>") if post.post_id == chosen else _EMPTY
        who = agent_link(post.agent_id) if post.agent_id else showable(told_of(post))
        return Markup("{} {}{}").format(who, _link("post", post.post_id), mark)

    return Section("thread", "The thread", "", [thread_of(tree, named)])


def happened_list(items: Iterable[tuple[str, Markup]]) -> Markup:
    """Return a list of what happened, each with when it did; nothing if there is nothing."""
    lines = _EMPTY.join(
        Markup('<li><span class="soft">{}</span> {}</li>').format(*each) for each in items
    )
    return lines and Markup('<ol class="happened tall" tabindex="0">{}</ol>').format(lines)


def agent_link(agent: str | None) -> Markup:
    """Return a button that leads to an agent."""
    return _EMPTY if agent is None else _link("agent", agent)


def _link(kind: str, name: str) -> Markup:
    return Markup('<button class="link" data-{}="{}">{}</button>').format(
        Markup(kind), showable(name), cut(name)
    )


def with_links(text: str, posts: Iterable[str]) -> Markup:
    """Return a sentence in which the first mention of each post leads to it."""
    shown, links = cut(text), _EMPTY
    for post in posts:
        before, found, shown_after = shown.partition(cut(post))
        if found:
            links, shown = links + before + _link("post", post), shown_after

    return links + shown
