"""One agent as a part of the page, or one thread: what was done, and why that was possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup

from prism.drawing import draw_svg, showable
from prism.errors import InputError
from prism.report._charts import Traffic
from prism.report._conversations import texts_of
from prism.runlog._prompts import find_answers
from prism.runlog._reader import in_words
from prism.telemetry.events import DECISION, TRANSITION
from prism.watch._charts import RunCharts, charts_of
from prism.watch._html import (
    Section,
    View,
    cut,
    event_list,
    link,
    object_in,
    posts_in,
    table,
    with_links,
)
from prism.watch._round import transcript
from prism.watch._watched import Watched

_MOST_EVENTS = 300
_MOST_DECISIONS = 40
_MOST_LIKERS = 20
_DEEPEST = 8
_EMPTY = Markup("")
_WHY_OPEN = (
    "Beside each option is the transition of the chart that leads there. It was enabled, so the "
    "condition in brackets held."
)
_LAST_FIRST = "The last first."
_ASKED = f"""
select line, event, round, tick, agent_id, state, "trigger", chosen, source, reason, options,
       probabilities, context, text, "key", model, option_mass, latency, queue_seconds,
       attempts, input_tokens, output_tokens, coalesce(decision_id, text_id) as id
from events
where agent_id = $agent and event in ('reasoner.decision', 'text.written')
  and (round is not distinct from $number) = $here
order by line {{}} limit {_MOST_DECISIONS}
"""
_JOINED = "select attributes from events where event = 'agent.joined' and agent_id = $agent limit 1"
_MEASURED = """
select measure, value from agent_measures
where agent_id = $agent and round is not distinct from $number
"""
_SPOKEN = """
select *, if(sender = $agent, receiver, sender) as partner from messages
where sender = $agent or receiver = $agent order by partner, line
"""
_POSTS = """
select post_id, agent_id, coalesce(text, '') as text from events
where event = 'post.published' and post_id = any($posts)
"""
_THREAD = """
select p.post_id, if(p.post_id = p.root_id, null, p.parent_id) as parent_id, p.root_id, kind,
       agent_id, text, round, tick
from posts p join (select root_id from posts where post_id = $post limit 1) r using (root_id)
order by line nulls first
"""
_LIKES = """
select post_id, agent_id from events where event = 'post.liked' and post_id = any($posts)
order by line
"""
_HOW = (
    *("model", "option_mass", "latency", "queue_seconds", "attempts"),
    *("input_tokens", "output_tokens"),
)


class Asked(NamedTuple):
    """A decision or a text: its event, and its prompt and reply if they were recorded."""

    event: Mapping[str, Any]
    record: Mapping[str, Any]


class AgentPage:
    """The page of one agent: what it did in one round and in all.

    Args:
        watched: The run.
        agent: The agent.
        number: The round that is looked at; None in a log without rounds.

    Raises:
        InputError: If the log has no such agent.
    """

    def __init__(self, watched: Watched, agent: str, number: int | None) -> None:
        self._watched = watched
        self._agent = agent
        self._number = number
        self._unit = watched.unit
        with watched.reading() as log:
            self._story = log.rows("agent", agent)
            self._charts = charts_of(watched)
            self._here = self._decisions(here=True)
            self._others = self._decisions(here=False)
            named = [*self._then, *(each.event for each in (*self._here, *self._others))]
            posts = sorted({post for event in named for post in posts_in(event)})
            rows = watched.rows(_POSTS, posts=posts) if posts else []
            self._posts = {row["post_id"]: (row["agent_id"], row["text"]) for row in rows}

    def view(self) -> View:
        """Return its sections, those of the round first."""
        then = self._then if self._number is not None else []
        when = "" if self._number is None else f" in {self._unit} {self._number:,}"
        whole = "in the whole run"
        parts = [
            ("then", f"What it did{when}", _LAST_FIRST, self._listed(then) if when else _EMPTY),
            ("asked", f"What it was asked{when}", _WHY_OPEN, self._asked(self._here)),
            ("fields", f"Its fields{when}", "", self._fields()),
            ("way", f"Its path on the chart {whole}", "", self._path()),
            ("spoken", f"Its messages {whole}", "", self._spoken()),
            ("others", f"What else it was asked {whole}", _LAST_FIRST, self._asked(self._others)),
            ("story", f"All that it did {whole}", _LAST_FIRST, self._listed(self._story)),
        ]
        return View([Section(name, head, how, html) for name, head, how, html in parts if html])

    @property
    def _then(self) -> list[dict[str, Any]]:
        return [row for row in self._story if row["round"] == self._number]

    def _decisions(self, *, here: bool) -> list[Asked]:
        """Return decisions with what was asked and replied, as far as that was recorded."""
        folder = self._watched.path.parent
        query = _ASKED.format("" if here else "desc")
        rows = self._watched.rows(query, agent=self._agent, number=self._number, here=here)
        rows.sort(key=lambda row: row["line"])
        ids = [row["id"] for row in rows if row["id"]]
        records: Mapping[str, Any] = {}
        # a damaged file of prompts: the log has the decisions nevertheless
        with suppress(InputError):
            records = find_answers(folder, ids, lambda _problem: None) if ids else {}
        return [Asked(row, records.get(row["id"], {})) for row in rows]

    def _listed(self, rows: Sequence[Mapping[str, Any]]) -> Markup:
        listed = event_list(
            (link("round", row["round"], self._when(row)), with_links(row["what"], posts_in(row)))
            for row in rows[: -_MOST_EVENTS - 1 : -1]
        )
        more = f"The last {_MOST_EVENTS:,} of {len(rows):,} events." * (len(rows) > _MOST_EVENTS)
        return Markup('<p class="soft">{}</p>').format(more if listed else "Nothing.") + listed

    def _when(self, row: Mapping[str, Any]) -> str:
        named = (("round", self._unit), ("tick", "tick"))
        return ", ".join(
            f"{word} {row[name]:,}" for name, word in named if isinstance(row.get(name), int)
        )

    def _fields(self) -> Markup:
        """Return its fields as it joined, and as far as the world measured them in the round."""
        joined = self._watched.rows(_JOINED, agent=self._agent)
        first = object_in(joined[0], "attributes") if joined else {}
        measured = self._watched.rows(_MEASURED, agent=self._agent, number=self._number)
        now = {row["measure"]: row["value"] for row in measured}
        rows = [
            {
                "field": showable(name),
                "first": _plain(first.get(name)),
                "now": _plain(now.get(name)),
            }
            for name in dict.fromkeys([*first, *now])
        ]
        return table(rows, {"first": "when it joined", "now": f"{self._unit} {self._number}"})

    def _path(self) -> Markup:
        counts = Traffic(
            (showable(row["from_state"]), showable(row["to_state"]))
            for row in self._story
            if row["event"] == TRANSITION and None not in (row["from_state"], row["to_state"])
        )
        for levels in self._charts.levels.values() if self._charts else ():
            states = {*levels.diagram.states}
            its = {ends: n for ends, n in levels.traffic(counts).items() if states.issuperset(ends)}
            if its:
                svg = Markup(draw_svg(levels.diagram, its))
                return Markup('<div class="scroll" tabindex="0">{}</div>').format(svg)

        return _EMPTY

    def _spoken(self) -> Markup:
        """Return what it said to each other agent, and was told, each as a transcript."""
        rows = self._watched.rows(_SPOKEN, agent=self._agent)
        return _EMPTY.join(
            Markup("<details><summary>With {}: {:,} messages</summary>{}</details>").format(
                cut(partner or "everybody"), len(said := [*group]), transcript(said)
            )
            for partner, group in groupby(rows, key=lambda row: row["partner"])
        )

    def _asked(self, asked: Sequence[Asked]) -> Markup:
        return _EMPTY.join(map(self._decision, reversed(asked)))

    def _decision(self, asked: Asked) -> Markup:
        """Write a decision or a text with all that is known of it."""
        event = asked.event
        if event["event"] == DECISION:
            what = f"{event['state']} on {event['trigger']}: {event['chosen']}"
        else:
            what = f"a text for {event['key']}"
        texts = dict(texts_of(asked.event, asked.record))
        if isinstance(event["text"], str):
            texts.setdefault("Text", event["text"])
        how = {name.replace("_", " "): event[name] for name in _HOW if event[name] is not None}
        parts = (
            self._about(asked),
            self._options(event),
            Markup('<p class="soft">{}</p>').format(cut(in_words(how))),
            *(
                Markup("<p>{}</p><pre>{}</pre>").format(heading, cut(text))
                for heading, text in texts.items()
            ),
        )
        title = cut(f"{self._when(event)}: {what} ({event['source']})")
        return Markup("<details><summary>{}</summary>{}</details>").format(
            title, _EMPTY.join(parts)
        )

    def _about(self, asked: Asked) -> Markup:
        """Write what a decision was about: a post with its text, or else its context."""
        event, about = asked.event, object_in(asked.event, "context")
        posts = [post for post in posts_in(event) if post in self._posts]
        if not posts:
            text = Markup("<p>About</p><pre>{}</pre>").format(cut(in_words(about)))
            return text if about else _EMPTY

        return _EMPTY.join(
            Markup("<p>About {}<br>{}: {}</p>").format(
                link("post", post),
                link("agent", self._posts[post][0]),
                cut(self._posts[post][1]),
            )
            for post in posts
        )

    def _options(self, event: Mapping[str, Any]) -> Markup:
        if not event["options"]:
            return _EMPTY

        chances = object_in(event, "probabilities")
        rows = _EMPTY.join(
            Markup("<li>{}{} {} <span class='soft'>{}</span></li>").format(
                cut(option),
                f" {chances[option]:.1%}" if isinstance(chances.get(option), float | int) else "",
                Markup("<b>chosen</b>") if option == event["chosen"] else "",
                cut(", ".join(_conditions(self._charts, event, option))),
            )
            for option in event["options"]
        )
        nothing = "The model gave no probabilities." if event["model"] and not chances else ""
        return Markup('<ul class="options">{}</ul><p class="soft">{}</p>').format(rows, nothing)


def _conditions(charts: RunCharts | None, event: Mapping[str, Any], option: str) -> Iterator[str]:
    """Yield the transitions of the chart that lead to an option, as the chart writes them."""
    state, trigger = str(event["state"]), str(event["trigger"])
    for name, levels in charts.levels.items() if charts else ():
        if name is not None:
            labels = levels.labels(state, option)
            yield from (label for label in labels if label.startswith(trigger))


def _plain(value: Any) -> Any:
    return value if type(value) in (int, float, type(None)) else showable(in_words(value))


def thread_page(watched: Watched, post: str) -> View:
    """Return the thread that a post belongs to, in reading order, and who liked each post.

    Raises:
        InputError: If the log has no such post.
    """
    with watched.reading():
        rows = watched.rows(_THREAD, post=post)
        likes = watched.rows(_LIKES, posts=[row["post_id"] for row in rows]) if rows else []
    if all(row["post_id"] != post or row["kind"] is None for row in rows):
        raise InputError(f"the log has no post {post!r} so far")

    likers = defaultdict[str, list[str]](list)
    for like in likes:
        likers[like["post_id"]].append(like["agent_id"])
    ids = {row["post_id"] for row in rows}
    below = defaultdict[str | None, list[Mapping[str, Any]]](list)
    for row in rows:
        below[row["parent_id"] if row["parent_id"] in ids else None].append(row)
    lines, waiting = [], [(0, row) for row in reversed(below[None])]
    while waiting:
        depth, row = waiting.pop()
        lines.append(_post(row, depth, likers[row["post_id"]], is_it=row["post_id"] == post))
        waiting += [(depth + 1, answer) for answer in reversed(below[row["post_id"]])]

    html = Markup('<ol class="thread tall" tabindex="0">{}</ol>').format(_EMPTY.join(lines))
    answers = "" if len(rows) > 1 else "Nobody replied to it or reshared it."
    return View([Section("thread", "The thread", answers, html)])


def _post(row: Mapping[str, Any], depth: int, likers: Sequence[str], *, is_it: bool) -> Markup:
    does = {"reply": " replies ", "reshare": " reshares "}.get(row["kind"], " ")
    if row["kind"] is None:
        does = "a post that is not in the log "
    by = Markup(", ").join(link("agent", agent) for agent in likers[:_MOST_LIKERS])
    liked = Markup(' <span class="soft">{:,} like{} by</span> {}').format(
        len(likers), "s" * (len(likers) > 1), by
    )
    text = '<li class="below-{}">{}{}{}{} <span class="soft">{}</span> {}{}</li>'
    return Markup(text).format(
        min(depth, _DEEPEST),
        link("agent", row["agent_id"]),
        does,
        link("post", row["post_id"]),
        Markup(" <b>this post</b>") if is_it else "",
        "" if row["round"] is None else f"round {row['round']:,}",
        cut(row["text"] or ""),
        liked if likers else "",
    )
