"""One round of a run: the world, the chart, numbers, messages, faults and events of one instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
from markupsafe import Markup

from prism.drawing import showable
from prism.report._html import place
from prism.report._picture import GROUPS, draw_picture, picture_of
from prism.watch._charts import charts_of, states_at
from prism.watch._html import (
    Section,
    View,
    event_list,
    link,
    number,
    object_in,
    posts_in,
    table,
    with_links,
)
from prism.watch._watched import Watched

MOST_EVENTS = 200
_MOST_FAULTS = 20
_MOST_IN_NETWORK = 2000

_KINDS = {
    "posts": "event in ('post.published', 'post.liked', 'post.disliked')",
    "messages": "event = 'message.sent'",
    "decisions": "event in ('reasoner.decision', 'text.written', 'statechart.answer_discarded')",
    "world": "event like 'world.%'",
    "steps": "event like 'workflow.%'",
    "thoughts": "event like 'cognition.%'",
    "moves": "event = 'statechart.transition'",
    "views": "event = 'post.weighed'",
}
"""Kinds of events that can be listed."""

_BY_THEMSELVES = ("moves", "views", "messages")
_WRONG = "line in (select line from wrong)"
_ALL = " or ".join([*(_KINDS[kind] for kind in _KINDS if kind not in _BY_THEMSELVES), _WRONG])
_HERE = "($number is null or round = $number)"
_KINDS_OF = f"""
select {", ".join(f"bool_or({condition}) as {kind}" for kind, condition in _KINDS.items())}
from events
"""
_FAULTS = f"""
select replace(fault, '_', ' ') as fault, chart, from_state, to_state, "trigger",
       arg_min(what, line) as error, count(*) as count, count(distinct agent_id) as agents,
       min(tick) as tick
from wrong where {_HERE} group by all order by count desc, min(line)
"""
_MESSAGES = f"""
select * from messages where {_HERE} order by line desc limit {MOST_EVENTS}
"""
_ENDED = "select * from events where event = 'round.ended' and round = $number order by line desc"
_COUNTS = (
    *("agent_ticks", "transitions", "decisions_asked", "decisions_answered"),
    *("posts", "replies", "reshares", "likes", "dislikes"),
)
_PICTURES = """
select * from events
where event = 'agents.pictured' and ($number is null or round <= $number or line = (
    select min(line) from events where event = 'agents.pictured'))
qualify line in (min(line) over (), max(line) over ()) order by line
"""

_HOW_TO_READ = (
    "States show the agents at the end of the {unit}, and arrows are as wide as the traffic of "
    "the {unit}, on one scale for all {unit}s. Choose a state or the number of an arrow to see its "
    "agents."
)
_HOW_MANY = f"The last {MOST_EVENTS} events; an agent's page has all of its events."


class Round:
    """The view of one round.

    Args:
        watched: The run.
        number: The round; None for the last, or for a log without rounds.
        kind: The events to list, one of the kinds or ``faults``; by default all but
            moves, views and messages.
    """

    def __init__(self, watched: Watched, number: int | None, kind: str = "") -> None:
        self._watched = watched
        self._head = watched.head()
        self._number: int | None = self._head["rounds"] if number is None else number
        self._kind = kind
        self._unit: str = self._head["unit"]
        self._figures: dict[str, alt.TopLevelMixin] = {}
        self._states: list[str] = []

    def view(self) -> View:
        """Return everything that the page shows of the round, with the head of the same instant."""
        more: dict[str, Any] = {"head": self._head, "round": self._number, "kinds": []}
        last, charts = self._head["rounds"], charts_of(self._watched)
        if charts is None:
            return View([], more=more)
        # an address may name a later round, and a log that is resumed loses some
        if self._number is not None and last is not None and self._number > last:
            text = Markup("<p>It has not begun: the last is {:,}.</p>").format(last)
            return View([Section("chart", f"{self._unit.capitalize()} {self._number:,}", "", text)])

        states = {showable(state): n for state, n in states_at(self._watched, self._number).items()}
        self._states = list(dict.fromkeys([*charts.seen, *states]))
        chart = charts.draw(self._number, states) or table(
            [{"state": state, "agents": count} for state, count in states.items() if count]
        )
        sections = [
            self._picture(),
            Section("chart", "The chart", self._how_to_read(), chart),
            Section("numbers", "Numbers", "", self._numbers()),
            Section("messages", "Messages", "", self._messages()),
            Section("faults", "What went wrong", "", self._faults()),
            self._happened(),
        ]
        (kinds,) = self._watched.rows(_KINDS_OF)
        more["kinds"] = ["faults", *(kind for kind, is_there in kinds.items() if is_there)]
        return View([self._named(each) for each in sections], self._figures, more)

    def _named(self, section: Section) -> Section:
        when = "" if self._number is None else f" in {self._unit} {self._number:,}"
        return Section(section.anchor, section.heading + when, section.explanation, section.html)

    def _how_to_read(self) -> str:
        logged, agents = self._head["logged"], self._head["agents"]
        text = _HOW_TO_READ.format(unit=self._unit)
        if logged is None:
            return text

        of_arrows = "what moved along arrows is not known, nor who is where"
        if logged:
            of_arrows = "arrows and the agents behind both are of these alone"
        return (
            f"The log has {logged:,} of {agents:,} agents: the numbers in states count everybody, "
            f"and {of_arrows}. {text}"
        )

    def _picture(self) -> Section:
        """Draw the world after the round, or say why it is not drawn."""
        rows = self._watched.rows(_PICTURES, number=self._number)
        picture = None
        if rows and (self._number is None or rows[-1]["round"] <= self._number):
            groups = [row["colour"] for row in self._watched.rows(GROUPS)]
            picture = picture_of(rows[0], rows[-1], groups)
        if picture is not None:
            where = f"After {self._unit} {picture.round:,}. Choose an agent for all it did."
            self._figures["picture-now"] = draw_picture(picture, self._states)
            return Section("picture", "The world", where, place("picture-now"))

        why = ""
        if self._head["world"] is not None and (self._head["agents"] or 0) > _MOST_IN_NETWORK:
            why = "It is not drawn: " + (
                "a log of rounds alone has no pictures."
                if self._head["logged"] == 0
                else f"a log has no picture of a network of more than {_MOST_IN_NETWORK:,} agents, "
                "nor of any world with more than 10,000."
            )
        return Section("picture", "The world", why, Markup(""))

    def _numbers(self) -> Markup:
        """Return what the end of the round says in numbers, without counts of posts of no feed."""
        ended = self._watched.rows(_ENDED, number=self._number) if self._number is not None else []
        counts = {name: ended[0][name] for name in _COUNTS if ended and ended[0][name] is not None}
        counts |= object_in(ended[0], "measures") if ended else {}
        for kind in ("timeouts", "fallbacks", "texts") if ended else ():
            counts |= {f"{kind} {name}": n for name, n in object_in(ended[0], kind).items()}
        cells = Markup("").join(
            Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(
                showable(name).replace("_", " "), number(value)
            )
            for name, value in counts.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        )
        return cells and Markup('<dl class="facts">{}</dl>').format(cells)

    def _messages(self) -> Markup:
        """Return who said what to whom, in the order in which it was said."""
        rows = reversed(self._watched.rows(_MESSAGES, number=self._number))
        return transcript(rows)

    def _faults(self) -> Markup:
        rows = self._watched.rows(_FAULTS, number=self._number)
        return table(rows[:_MOST_FAULTS], {"from_state": "from", "to_state": "to"})

    def _happened(self) -> Section:
        condition = _WRONG if self._kind == "faults" else _KINDS.get(self._kind, _ALL)
        query = (
            "select line, event, tick, agent_id, what, post_id, parent_id, context from happened "
            "where line in (select line from events "
            f"where {_HERE} and ({condition}) order by line desc limit {MOST_EVENTS}) "
            "order by line desc"
        )
        rows = self._watched.rows(query, number=self._number)
        listed = event_list(_sentences(rows)) or Markup(
            '<p class="soft">Nothing of this kind in this {}.</p>'
        ).format(self._unit)
        return Section("happened", "What happened", _HOW_MANY * (len(rows) == MOST_EVENTS), listed)


def transcript(messages: Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> Markup:
    """Return messages as one reads them."""
    return event_list(
        (
            "" if each["tick"] is None else f"tick {each['tick']:,}",
            Markup("{} to {}: {}").format(
                link("agent", each["sender"]),
                link("agent", each["receiver"]) if each["receiver"] else "everybody",
                with_links(each["content"] or "", ()),
            ),
        )
        for each in messages
    )


def _sentences(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Markup]]:
    for row in rows:
        when = "" if row["tick"] is None else f"tick {row['tick']:,}"
        text = with_links(row["what"] or row["event"], posts_in(row))
        yield when, Markup("{} {}").format(link("agent", row["agent_id"]), text)
