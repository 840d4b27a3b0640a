"""One agent as a part of the page, or one thread: what was done, and why that was possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from prism.analysis._tables.cascades import TreePost, told_of
from prism.drawing import Levels, draw_svg, showable
from prism.report._facts.run_facts import Recorded, RunFacts
from prism.report._figures.html_table import html_table
from prism.report._sections.cascades import thread_of
from prism.report._sections.diagram import diagram_of
from prism.report._sections.faults import cut, texts_of
from prism.report._sections.kinds import Section
from prism.runlog._words import in_words
from prism.telemetry.events import DECISION, POST_PUBLISHED, POST_WEIGHED, TRANSITION
from prism.watch._looking import Doings, post_ids

_MOST_STORY = 300
_EMPTY = Markup("")
_WHY_OPEN = (
    "Beside each option is the transition of the chart that leads there. It was enabled, so the "
    "condition in brackets held. A post's relevance has to reach the agent's threshold times the "
    "feed's parameter engagement, unless the feed has a should_engage of its own."
)
_LAST_FIRST = "The last first."
_IN_TICKS = "Ticks from entering a state to leaving it."


@dataclass(frozen=True)
class AgentPage:
    """The page of one agent: what it did in one round and in all.

    Args:
        agent: The agent.
        doings: What it did.
        facts: The facts of its run, with the charts.
        number: The round that is looked at; None in a log without rounds.
        unit: What a round of this run is called.
    """

    agent: str
    doings: Doings
    facts: RunFacts
    number: int | None
    unit: str

    def sections(self) -> list[Section]:
        """Return its sections, those of the round first."""
        story = self.doings.story
        is_here = pl.col("round").eq_missing(pl.lit(self.number, pl.Int64))
        then = story.filter(is_here)
        here, others = self.doings.here, self.doings.others
        when = "" if self.number is None else f" in {self.unit} {self.number:,}"
        parts = [
            ("then", f"What it did{when}", _LAST_FIRST, self._told(then) if when else _EMPTY),
            ("asked", f"What it was asked{when}", _WHY_OPEN, self._asked(here)),
            ("way", "Its path on the chart in the whole run", "", self._way(story)),
            ("dwell", "Its stays in each state in the whole run", _IN_TICKS, self._dwelling(story)),
            ("others", "What else it was asked in the whole run", _LAST_FIRST, self._asked(others)),
            ("story", "All that it did in the whole run", _LAST_FIRST, self._told(story)),
        ]
        return [Section(name, head, how, [html]) for name, head, how, html in parts if html]

    def _told(self, rows: pl.DataFrame) -> Markup:
        last = rows.tail(_MOST_STORY).reverse()
        told = happened_list(
            (link("round", row["round"], self._when(row)), with_links(row["what"], post_ids(row)))
            for row in last.iter_rows(named=True)
        )
        more = f"The last {_MOST_STORY:,} of {rows.height:,} events." * (rows.height > _MOST_STORY)
        return Markup('<p class="soft">{}</p>').format(more if told else "Nothing.") + told

    def _when(self, row: Mapping[str, Any]) -> str:
        named = (
            f"{word} {row[name]:,}"
            for name, word in (("round", self.unit), ("tick", "tick"))
            if isinstance(row.get(name), int)
        )
        return ", ".join(named)

    def _text(self, post: str | None) -> Markup:
        author, text = self.doings.posts.get(post or "", ("", ""))
        return Markup("<br>{}: {}").format(link("agent", author), cut(text)) if author else _EMPTY

    def _way(self, story: pl.DataFrame) -> Markup:
        own = story.filter(agent_id=self.agent, event=TRANSITION)
        moves = own.select("from_state", "to_state").drop_nulls().iter_rows()
        counts = Counter((showable(source), showable(target)) for source, target in moves)
        for chart in self.facts.chart_names:
            levels = Levels(diagram_of(chart, [self.facts]))
            states, traffic = set(levels.diagram.states), levels.traffic(counts)
            its = {ends: count for ends, count in traffic.items() if states.issuperset(ends)}
            if its:
                svg = Markup(draw_svg(levels.diagram, its))
                return Markup('<div class="scroll" tabindex="0">{}</div>').format(svg)

        return _EMPTY

    def _dwelling(self, story: pl.DataFrame) -> Markup:
        # events at rates have no whole ticks
        length = "rounds_in_state" if "rounds_in_state" in story.columns else "ticks_in_state"
        ticks = pl.col(length)
        visits = story.filter(agent_id=self.agent, event=TRANSITION).drop_nulls(length)
        if visits.is_empty():
            return _EMPTY

        state = pl.col("from_state").map_elements(showable, return_dtype=pl.String)
        by_state = visits.group_by(state=state, maintain_order=True)
        stays = by_state.agg(visits=pl.len(), mean=ticks.mean(), longest=ticks.max())
        return html_table("agent-dwell", stays)

    def _asked(self, asked: Sequence[Recorded]) -> Markup:
        return _EMPTY.join(map(self._decision, reversed(asked)))

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

        known = (self._about(asked), self._options(event), self._followed(event))
        told = _EMPTY.join((*known, _asked_how(event), parts))
        return Markup("<details><summary>{}</summary>{}</details>").format(cut(title), told)

    def _followed(self, event: Mapping[str, Any]) -> Markup:
        """Lead from a decision to what was written before the next one."""
        is_decision = pl.col("event") == DECISION
        own = self.doings.story.filter(agent_id=self.agent).with_columns(turn=is_decision.cum_sum())
        its = own.filter(is_decision, _at_time_of(event))["turn"]
        written = own.filter(pl.col("turn").is_in(its.implode()), event=POST_PUBLISHED)
        links = Markup(", ").join(link("post", post) for post in written["post_id"])
        return links and Markup("<p>Before its next decision, it wrote {}</p>").format(links)

    def _about(self, asked: Recorded) -> Markup:
        """Write what a decision was about: a post with its text, or else its context."""
        event, about = asked.event, asked.event.get("context")
        posts = [post for post in post_ids(event) if post in self.doings.posts]
        if posts:
            return _EMPTY.join(
                Markup("<p>About {}{}{}</p>").format(
                    link("post", post), self._weighed(event, post), self._text(post)
                )
                for post in posts
            )
        if not isinstance(about, dict) or not about:
            return _EMPTY

        return Markup("<p>About</p><pre>{}</pre>").format(cut(in_words(about)))

    def _weighed(self, event: Mapping[str, Any], post: str) -> str:
        """Say what the agent made of a post before it decided about it."""
        weighed = self.doings.story.filter(event=POST_WEIGHED, post_id=post)
        known = weighed.filter(_at_time_of(event)).drop_nulls(["relevance", "threshold"])
        for relevance, threshold in known.select("relevance", "threshold").tail(1).iter_rows():
            asks = f"threshold {threshold:.3g}"
            share = self.facts.run.parameters.get("engagement")
            if isinstance(share, int | float):
                asks += f" times engagement {share:.3g} = {threshold * share:.3g}"
            return f" (relevance {relevance:.3g}, {asks})"

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
        said = "The model gave no probabilities." if event.get("model") and not known else ""
        return Markup('<ul class="options">{}</ul><p class="soft">{}</p>').format(rows, said)

    def _conditions(self, event: Mapping[str, Any], option: str) -> Iterator[str]:
        """Yield the transitions of the chart that lead to an option, as the chart writes them."""
        state, trigger = str(event.get("state")), str(event.get("trigger"))
        charts = self.facts.charts
        for name in filter(charts.__contains__, map(str, self.facts.chart_names)):
            labels = Levels(charts[name]).labels(state, option)
            yield from (label for label in labels if label.startswith(trigger))


def _at_time_of(event: Mapping[str, Any]) -> pl.Expr:
    times = {name: pl.lit(event.get(name), pl.Int64) for name in ("round", "tick")}
    return pl.all_horizontal(pl.col(name).eq_missing(time) for name, time in times.items())


_HOW = (
    *("model", "option_mass", "latency", "queue_seconds", "attempts"),
    *("input_tokens", "output_tokens"),
)


def _asked_how(event: Mapping[str, Any]) -> Markup:
    known = {name.replace("_", " "): event[name] for name in _HOW if event.get(name) is not None}
    return Markup('<p class="soft">{}</p>').format(cut(in_words(known)))


def thread_page(tree: tuple[TreePost, ...], chosen: str) -> Section:
    """Return a thread as people read it.

    Args:
        tree: Its posts, the root first.
        chosen: The post that led to it.
    """

    def named(post: TreePost) -> Markup:
        mark = Markup(" <b>this post</b>") if post.post_id == chosen else _EMPTY
        does = showable(told_of(post).removeprefix(post.agent_id))
        who = link("agent", post.agent_id or None)
        return Markup("{}{} {}{}").format(who, does, link("post", post.post_id), mark)

    answers = "" if len(tree) > 1 else "Nobody replied to it or reshared it."
    return Section("thread", "The thread", answers, [thread_of(tree, named)])


def happened_list(items: Iterable[tuple[str, Markup]]) -> Markup:
    """Return a list of what happened, each with when it did; nothing if there is nothing."""
    lines = _EMPTY.join(
        Markup('<li><span class="soft">{}</span> {}</li>').format(*each) for each in items
    )
    return lines and Markup('<ol class="happened tall" tabindex="0">{}</ol>').format(lines)


def link(kind: str, name: str | int | None, said: str | None = None) -> Markup:
    """Return a button that leads to an agent, a post or a round; without it, what is said."""
    shown = cut(said or str(name or ""))
    button = Markup('<button class="link" data-{}="{}">{}</button>')
    if name is None:
        return Markup.escape(shown)

    return button.format(Markup(kind), showable(str(name)), shown)


def with_links(text: str, posts: Iterable[str]) -> Markup:
    """Return a sentence in which the first mention of each post leads to it."""
    shown, links = cut(text), _EMPTY
    for post in posts:
        before, found, shown_after = shown.partition(cut(post))
        if found:
            links, shown = links + before + link("post", post), shown_after

    return links + shown
