"""What one reads: threads of posts, messages, and decisions with their prompts and replies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import orjson
from markupsafe import Markup

from prism.analysis import Log, rows_of
from prism.reasoner.prompts import in_words
from prism.report.table import MOST_CHARACTERS, Rows, joined, link, short
from prism.runlog.reader import find_answers

_MOST_POSTS, _MOST_STEPS, _MOST_OF_A_KIND = 100, 8, 6

_LARGEST = """
select root_id, size from cascades where size > 1 order by size desc, depth desc limit 6
"""
THREADS = f"""
with recursive chosen as ({{chosen}}),
below as (
    select c.root_id, p.post_id, 0 as depth, [coalesce(p.line, 0)] as path
    from chosen c join posts p on p.post_id = c.root_id
    union all
    select b.root_id, p.post_id, b.depth + 1, list_append(path, coalesce(p.line, 0))
    from below b join posts p on p.parent_id = b.post_id
    where p.post_id <> b.root_id
)
select root_id, size, depth, kind, agent_id, text, round, post_id,
       (select count(*) from events e where e.event = 'post.liked' and e.post_id = b.post_id)
       as likes
from below b join chosen using (root_id) join posts using (post_id)
qualify row_number() over (partition by b.root_id order by path) <= {_MOST_POSTS}
order by size desc, b.root_id, path
"""
"""The posts of cascades in reading order: each answer below its post."""

DECISIONS = """
select line, event, round, tick, agent_id, state, "trigger", chosen, source, reason, options,
       probabilities, context, text, "key", model, option_mass, latency, queue_seconds, attempts,
       input_tokens, output_tokens, coalesce(decision_id, text_id) as id
from events
"""
_NOTABLE = f"""
with asked as (
    select *, try_cast(probabilities ->> chosen as double) as chance,
           list_max(try_cast(json_extract(probabilities, '$.*') as double[])) as best
    from ({DECISIONS} where event = 'reasoner.decision')
)
(select *, 'it fell back' as why from asked where source = 'fallback'
 order by line limit {_MOST_OF_A_KIND})
union all
(select *, format('its probability was {{:.3f}}', chance) as why
 from asked where source <> 'fallback' and chance < best
 order by chance, line limit {_MOST_OF_A_KIND})
"""
"""The first fallbacks, and decisions against the model's own preference."""

_HOW = ("model", "option_mass", "latency", "queue_seconds", "attempts", "input_tokens")


def threads(log: Log) -> Markup:
    """Return the largest cascades as threads; nothing if nobody replied."""
    rows = rows_of(log.sql(THREADS.format(chosen=_LARGEST)))
    trees = [list(tree) for _, tree in groupby(rows, lambda row: row["root_id"])]
    parts = joined(
        Markup("<details{}><summary>{} by {}: {:,} posts</summary>{}</details>").format(
            Markup("" if index else " open"),
            short(tree[0]["root_id"]),
            short(tree[0]["agent_id"] or "an unknown author"),
            tree[0]["size"],
            thread(tree),
        )
        for index, tree in enumerate(trees)
    )
    return parts and Markup("<h3>The largest as threads</h3>{}").format(parts)


def thread(posts: Rows, chosen: str | None = None) -> Markup:
    """Return posts in reading order as a list, each as far to the right as it is deep."""
    lines = joined(
        Markup('<li class="below-{}"><b>{}</b> {} {} <span class="soft">{}</span></li>').format(
            min(post["depth"], _MOST_STEPS),
            _author(post),
            Markup("<mark>{}</mark>" if post["post_id"] == chosen else "{}").format(
                link("post", post["post_id"])
            ),
            short(post["text"] or ""),
            _remarks(post),
        )
        for post in posts
    )
    more = Markup("<p class='soft'>The first {:,} posts.</p>").format(_MOST_POSTS)
    listed = Markup('<ol class="thread tall" tabindex="0">{}</ol>').format(lines)
    return listed + more if posts[0]["size"] > len(posts) else listed


def _author(post: Mapping[str, Any]) -> Markup:
    if post["kind"] is None:
        return Markup("a post that is not in the log")
    verb = {"reply": " replies", "reshare": " reshares"}.get(post["kind"], "")
    return link("agent", post["agent_id"], post["agent_id"] or "an unknown author") + verb


def _remarks(post: Mapping[str, Any]) -> str:
    likes = f"{post['likes']:,} like{'s' if post['likes'] > 1 else ''}" if post["likes"] else ""
    return ", ".join(filter(None, [when({"round": post["round"]}), likes]))


def transcript(messages: Rows) -> Markup:
    """Return messages as one reads them."""
    return listed(
        (
            when(each),
            Markup("{} to {}: {}").format(
                link("agent", each["sender"]),
                link("agent", each["receiver"], each["receiver"] or "everybody"),
                short(each["content"] or ""),
            ),
        )
        for each in messages
    )


def listed(items: Iterable[tuple[str | Markup, Markup]]) -> Markup:
    """Return a list of what happened, each with when; nothing if there is none."""
    lines = joined(
        Markup('<li><span class="soft">{}</span> {}</li>').format(*each) for each in items
    )
    return lines and Markup('<ol class="happened tall" tabindex="0">{}</ol>').format(lines)


def when(row: Mapping[str, Any], unit: str = "round") -> str:
    """Return when something happened in words; nothing for a log without rounds and ticks."""
    named = (("round", unit), ("tick", "tick"))
    return ", ".join(
        f"{word} {row[name]:,}" for name, word in named if isinstance(row.get(name), int)
    )


def prompts(log: Log) -> Markup:
    """Return decisions worth a look with their prompts; nothing if none was recorded."""
    rows = rows_of(log.sql(_NOTABLE))
    records = records_of(log, rows)
    return joined(
        decision(f"{row['id']}: {what_of(row)}; {row['why']}", row, records[row["id"]])
        for row in rows
        if row["id"] in records
    )


def records_of(log: Log, rows: Rows) -> Mapping[str, Mapping[str, Any]]:
    """Return the prompts and replies of decisions by id, as far as they were recorded."""
    ids = [row["id"] for row in rows if row["id"]]
    # the notes on the logs report what is damaged
    return find_answers(log.runs[0].path.parent, ids) if ids else {}


def what_of(row: Mapping[str, Any]) -> str:
    """Return in words what a decision or a text was for, and what came of it."""
    if row["event"] == "reasoner.decision":
        return f"{row['state']} on {row['trigger']}, chose {row['chosen']}"
    return f"a text for {row['key']}"


def decision(heading: str, row: Mapping[str, Any], record: Mapping[str, Any]) -> Markup:
    """Return a decision or a text with its options, its prompt and its reply.

    Args:
        heading: What stands above it.
        row: Its row of ``DECISIONS``.
        record: Its prompt and reply, if they were recorded.
    """
    parts = joined(
        Markup("<p>{}</p><pre>{}</pre>").format(name, short(text, MOST_CHARACTERS))
        for name, text in _texts_of(row, record).items()
    )
    details = Markup("<details><summary>{}</summary>{}{}</details>")
    return details.format(short(heading), _options(row), parts)


def _options(row: Mapping[str, Any]) -> Markup:
    chances = object_in(row, "probabilities")
    lines = joined(
        Markup("<li>{}{} {}</li>").format(
            short(option),
            f" {chances[option]:.1%}" if isinstance(chances.get(option), float | int) else "",
            Markup("<b>chosen</b>") if option == row["chosen"] else "",
        )
        for option in row["options"] or ()
    )
    return lines and Markup('<ul class="options">{}</ul>').format(lines)


def _texts_of(row: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a decision by their headings."""
    how = {name.replace("_", " "): row[name] for name in _HOW if row[name] is not None}
    context, reply = object_in(row, "context"), record.get("reply")
    texts = {
        "About": in_words(context),
        "Asked": in_words(how),
        "Reason": row["reason"],
        "Text": row["text"],
        "Prompt": record.get("prompt"),
        "Reply": reply if isinstance(reply, str | None) else json.dumps(reply, indent=1),
    }
    return {name: str(text) for name, text in texts.items() if text}


def object_in(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object that a row has under a name; an empty one if it has none."""
    value = row.get(name)
    value = orjson.loads(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else {}
