"""One round of a run: the world, the chart, numbers, messages, faults and events of one instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from markupsafe import Markup

from prism.drawing import number_text, showable
from prism.report import Section
from prism.report.charts import titles_kept
from prism.report.conversations import listed, object_in, transcript, when
from prism.report.picture import picture
from prism.report.table import joined, link, with_values
from prism.watch._view import agents_at, draw_charts, run_charts, sentence, view
from prism.watch._watched import Watched

_MOST_EVENTS, _MOST_FAULTS = 200, 20
_HERE = "($number is null or round = $number)"

_FAULTS = f"""
select replace(fault, '_', ' ') as fault, chart, from_state, to_state, "trigger",
       arg_min(what, line) as error, count(*) as count, count(distinct agent_id) as agents,
       min(tick) as tick
from wrong where {_HERE} group by all order by count desc, min(line) limit {_MOST_FAULTS}
"""
_MESSAGES = f"""
select * from (from messages where {_HERE} order by line desc limit {_MOST_EVENTS}) order by line
"""
_ENDED = "select * from events where event = 'round.ended' and round = $number order by line desc"
_COUNTS = (
    "agent_ticks", "transitions", "decisions_asked", "decisions_answered",
    "posts", "replies", "reshares", "likes", "dislikes",
)  # fmt: skip
# The chart has the transitions, and the transcript the messages.
_HAPPENED = f"""
select line, event, tick, agent_id, what, post_id from happened
where line in (
    select line from events
    where {_HERE} and agent_id is not null and event not in (
        'statechart.transition', 'post.weighed', 'message.sent', 'agent.joined')
    order by line desc limit {_MOST_EVENTS})
order by line desc
"""
_HOW_TO_READ = (
    "States show the agents at the end of the {unit}, and arrows are as wide as the traffic of "
    "the {unit}, on one scale for all {unit}s. Choose a state or the number of an arrow to see its "
    "agents."
)


def round_view(watched: Watched, number: int | None) -> dict[str, Any]:
    """Return everything that the page shows of a round, with the head of the same instant.

    Args:
        watched: The run.
        number: The round; None for the last, or for a log without rounds.
    """
    with watched.reading():
        head = watched.head()
        last = head["rounds"]
        number = last if number is None else number
        # an address may name a later round, and a log that is resumed loses some
        if number is not None and last is not None and number > last:
            text = f"{head['unit'].capitalize()} {number:,} has not begun: the last is {last:,}."
            sections = [Section("The chart", more=Markup("<p>{}</p>").format(text))]
        else:
            sections = list(_sections(watched, number, head))
    return view(sections, head=head, round=number)


def _sections(watched: Watched, number: int | None, head: Mapping[str, Any]) -> Iterator[Section]:
    charts = run_charts(watched)
    if charts is None:
        return

    agents = agents_at(watched, charts, number)
    with watched.reading() as log:
        states = list(dict.fromkeys([*charts.all_states, *chain.from_iterable(agents.values())]))
        if drawn := picture(log, states, number):
            about = f"After {head['unit']} {number}. Choose an agent for all it did."
            yield Section("The world", about, {"picture-now": drawn})
    yield Section("The chart", _how_to_read(head), more=draw_charts(charts, number, agents))
    yield Section("Numbers", more=_numbers(watched, number))
    yield Section("Messages", more=transcript(watched.rows(_MESSAGES, number=number)))
    faults = with_values(watched.rows(_FAULTS, number=number))
    yield Section("What went wrong", rows=faults, headings={"from_state": "from", "to_state": "to"})
    events = listed(
        (
            when({"tick": row["tick"]}),
            Markup("{} {}").format(link("agent", row["agent_id"]), sentence(row)),
        )
        for row in watched.rows(_HAPPENED, number=number)
    )
    about = f"The last {_MOST_EVENTS} events at most. An agent's page has all of its events."
    yield Section("What happened", about, more=events)


def _how_to_read(head: Mapping[str, Any]) -> str:
    text = _HOW_TO_READ.format(unit=head["unit"])
    if head["logged"] is None:
        return text
    return (
        f"The log has {head['logged']:,} of {head['agents']:,} agents: the numbers in states count "
        f"everybody, arrows and lists of agents these alone. {text}"
    )


def _numbers(watched: Watched, number: int | None) -> Markup:
    """Return what the end of the round says in numbers."""
    ended = watched.rows(_ENDED, number=number)[:1]
    if not ended:
        return Markup("")
    (row,) = ended
    with watched.reading() as log:
        titles = titles_kept(log.runs[0])
    counts = {name: row[name] for name in _COUNTS}
    counts |= {titles.get(name, name): each for name, each in object_in(row, "measures").items()}
    for kind in ("timeouts", "fallbacks", "texts"):
        counts |= {f"{kind} {name}": count for name, count in object_in(row, kind).items()}
    cells = joined(
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(
            showable(name).replace("_", " "), number_text(value)
        )
        for name, value in counts.items()
        if type(value) in (int, float)
    )
    return cells and Markup('<dl class="facts">{}</dl>').format(cells)
