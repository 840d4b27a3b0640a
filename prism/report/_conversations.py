"""What one reads: threads of posts, and prompts that are worth a look."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import Any

from markupsafe import Markup

from prism.analysis import Log
from prism.drawing import showable
from prism.files._records import shown_path
from prism.report._table import Rows, rows_of, short
from prism.runlog._prompts import ANSWERS_NAME, asked_in, find_answers

_MOST_THREADS, _MOST_POSTS, _MOST_STEPS = 6, 100, 8
_MOST_OF_A_KIND = 6
_MOST_CHARACTERS = 4000

_THREADS = f"""
with recursive largest as (
    select run, root_id, size from cascades where size > 1
    qualify row_number() over (partition by run order by size desc, depth desc) <= $most
), below as (
    select l.run, l.root_id, p.post_id, 0 as depth, [coalesce(p.line, 0)] as path
    from largest l join posts p on p.run = l.run and p.post_id = l.root_id
    union all
    select b.run, b.root_id, p.post_id, b.depth + 1, list_append(path, coalesce(p.line, 0))
    from below b join posts p on p.run = b.run and p.parent_id = b.post_id
    where p.post_id <> b.root_id
), cut as (
    select distinct run, agent_id, round, tick, "key" as kind from events
    where event = 'text.written' and events.cut
)
select b.run, b.root_id, l.size, b.depth, p.kind, p.agent_id, p.text, p.round,
       (select count(*) from events e where e.event = 'post.liked' and e.run = b.run
            and e.post_id = b.post_id) as likes,
       exists (from cut c where (c.run, c.agent_id, c.round, c.tick, c.kind)
               = (b.run, p.agent_id, p.round, p.tick, p.kind)) as was_cut
from below b join largest l using (run, root_id) join posts p
  on p.run = b.run and p.post_id = b.post_id
qualify row_number() over (partition by b.run, b.root_id order by path) <= {_MOST_POSTS}
order by b.run, l.size desc, b.root_id, path
"""
"""The posts of the largest cascades in reading order: each answer below its post."""

_NOTABLE = """
with asked as (
    select *, rank() over (partition by run, source = 'fallback' order by line) as place,
           try_cast(probabilities ->> chosen as double) as chance,
           list_max(try_cast(json_extract(probabilities, '$.*') as double[])) as best
    from events where event = 'reasoner.decision'
)
select run, line, state, "trigger", chosen, reason, 'it fell back' as why
from asked where source = 'fallback' and place <= $most
union all (
    select run, line, state, "trigger", chosen, reason,
           format('its probability was {:.3f}', chance)
    from asked where source <> 'fallback' and chance < best
    qualify row_number() over (partition by run order by chance, line) <= $most
    order by run, chance, line)
"""
"""The first fallbacks, and decisions against the model's own preference."""


def threads(log: Log) -> Markup:
    """Return the largest cascades as threads; nothing if nobody replied."""
    most = max(1, _MOST_THREADS // max(1, len(log.runs)))
    rows = rows_of(log.sql(_THREADS, most=most))
    trees = [list(tree) for _, tree in groupby(rows, lambda row: (row["run"], row["root_id"]))]
    parts = Markup("").join(
        Markup("<details{}><summary>{} by {}: {:,} posts</summary>{}</details>").format(
            Markup(" open") if place == 0 else "",
            short(tree[0]["root_id"]),
            short(tree[0]["agent_id"] or "an unknown author"),
            tree[0]["size"],
            thread(tree),
        )
        for place, tree in enumerate(trees)
    )
    return Markup("<h3>The largest as threads</h3>{}").format(parts) if parts else parts


def thread(posts: Rows) -> Markup:
    """Return posts in reading order as a list, each as far to the right as it is deep."""
    lines = Markup("").join(
        Markup('<li class="below-{}"><b>{}</b> <span class="soft">{}</span> {}{}</li>').format(
            min(post["depth"], _MOST_STEPS),
            _author(post),
            "" if post["round"] is None else f"round {post['round']:,}",
            short(post["text"] or ""),
            Markup('<span class="soft">{}</span>').format(_remarks(post)),
        )
        for post in posts
    )
    more = Markup("<p class='soft'>The first {:,} posts.</p>").format(_MOST_POSTS)
    listed = Markup('<ol class="thread tall" tabindex="0">{}</ol>').format(lines)
    return listed + more if posts[0]["size"] > len(posts) else listed


def _author(post: Mapping[str, Any]) -> str:
    if post["kind"] is None:
        return "a post that is not in the log"
    verb = {"reply": " replies", "reshare": " reshares"}.get(post["kind"], "")
    return f"{short(post['agent_id'] or 'an unknown author')}{verb}"


def _remarks(post: Mapping[str, Any]) -> str:
    likes = f"{post['likes']:,} like{'s' if post['likes'] > 1 else ''}" if post["likes"] else ""
    remarks = ", ".join(filter(None, ["cut here" if post["was_cut"] else "", likes]))
    return f" ({remarks})" if remarks else ""


def prompts(log: Log) -> Markup:
    """Return decisions worth a look with their prompts; nothing if none was recorded."""
    kept = [run for run in log.runs if (run.path.parent / ANSWERS_NAME).is_file()]
    rows = rows_of(log.sql(_NOTABLE, most=_MOST_OF_A_KIND)) if kept else []
    parts = []
    for run in kept:
        own = {row["line"]: row for row in rows if row["run"] == run.label}
        asked = {
            each.id: own[each.line] for each in asked_in(run.path, _ignore) if each.line in own
        }
        folder = run.path.parent
        records = find_answers(folder, filter(None, asked), _ignore)
        parts += [
            _prompt(name, row, records[name], folder)
            for name, row in asked.items()
            if name is not None and name in records
        ]
    return Markup("").join(parts)


def _ignore(_fault: str) -> None:
    """Ignore it, since the notes on the logs report unreadable parts."""


def _prompt(name: str, row: Mapping[str, Any], record: Mapping[str, Any], folder: Path) -> Markup:
    command = f"prism log decision {quote(name)} {quote(shown_path(folder))}"
    asked = f"{row['state']} on {row['trigger']}, chose {row['chosen']}"
    parts = Markup("").join(
        Markup("<p>{}</p><pre>{}</pre>").format(heading, cut(text))
        for heading, text in texts_of(row, record)
    )
    return Markup("<details><summary>{}</summary><p><code>{}</code></p>{}</details>").format(
        cut(f"{name}: {asked}; {row['why']}"), cut(command), parts
    )


def texts_of(row: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the record of a decision: headings and texts.

    Args:
        row: The decision, with its ``reason``.
        record: Its prompt and reply.
    """
    if row.get("reason"):
        yield "Reason", str(row["reason"])
    if record.get("prompt") is not None:
        yield "Prompt", str(record["prompt"])
    if (reply := record.get("reply")) is not None:
        is_text = isinstance(reply, str)
        yield "Reply", reply if is_text else json.dumps(reply, indent=1, ensure_ascii=False)


def cut(text: str) -> str:
    """Shorten a text for the page, without characters that HTML cannot represent."""
    left = len(text) - _MOST_CHARACTERS
    return showable(text if left <= 0 else f"{text[:_MOST_CHARACTERS]}… ({left:,} characters more)")
