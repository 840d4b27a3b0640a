"""``prism log decision``: what a model was asked, and what it said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from prism.cli._options import AsJson
from prism.cli._screen import note, print_facts, print_json, say
from prism.cli._tables import open_logs, records_of, write_table
from prism.errors import InputError

_LISTED = """
select coalesce(decision_id, text_id) as id, round, tick,
       coalesce(state || ' on ' || "trigger", 'text ' || "key") as what,
       coalesce(chosen, text) as "came out", try_cast(probabilities ->> chosen as double) as p,
       source, agent_id, line, reason, context, options, probabilities, model
from events
where event in ('reasoner.decision', 'text.written')
  and agent_id = coalesce($agent, agent_id) and round is not distinct from coalesce($round, round)
order by line
"""
_ONE = "from events where coalesce(decision_id, text_id) = $id order by line"
_SHOWN = ("id", "round", "tick", "what", "came out", "p", "source")
_ADDED = ("run", "line", "keys")
_LEFT_OUT = ("event", "level", "timestamp", "chart")


def decision(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[ID] RUN",
            help="Folder of the run, or its log; before it a decision or text, such as "
            "agent_0001:3, the agent's third. Without one, all are listed.",
        ),
    ],
    agent: Annotated[str | None, typer.Option(help="List only those of this agent.")] = None,
    round_: Annotated[
        int | None, typer.Option("--round", min=0, help="List only those of this round.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a decision or a text: the question, the prompt, the reply, and the choice.

    Prompts and replies are in the journal of a run that is kept. `prism log agent` shows what came
    of it.

    **Examples**

    * `prism log decision runs/model --agent agent_0001`

    * `prism log decision agent_0001:3 runs/model`
    """
    *ids, name = names
    run = Path(name)
    if len(ids) > 1:
        raise InputError(f"takes an ID and a run, not {len(names)} names: {', '.join(names)}")
    if ids:
        _show(run, ids[0], as_json=as_json)
        return
    listed = open_logs([run]).sql(_LISTED, agent=agent, round=round_)
    write_table(listed, None, [run], as_json=as_json, shown=_SHOWN)


def _show(run: Path, record_id: str, *, as_json: bool) -> None:
    """Print one decision or text, as tables or as JSON."""
    from prism.runlog._answers import find_answers
    from prism.runlog._reader import in_words, locate_log

    table = open_logs([run]).sql(_ONE, id=record_id)
    found = records_of(table)
    if not found:
        problem = f"holds no decision or text {record_id!r}: 'prism log decision {run}' lists them"
        raise InputError(problem, path=run)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    event = {
        key: json.loads(value) if kinds[key] == "JSON" else value
        for key, value in found[0].items()
        if value is not None and key not in _ADDED
    }
    folder = locate_log(run).parent
    record = find_answers(folder, [record_id]).get(record_id)
    if as_json:
        print_json({"id": record_id, "event": event, "record": record})
        return

    facts = {key: in_words(value) for key, value in event.items() if key not in _LEFT_OUT}
    print_facts(record_id, facts)
    if record is None:
        note(f"{folder} has no prompt of it: no model was asked in this run")
        return
    said = [("Prompt", record.get("prompt"))]
    for each in record.get("repairs", ()):
        said += [("Reply, of no use", each["reply"]), ("Prompt, again", each["prompt"])]
    for heading, content in (*said, ("Reply", record.get("reply"))):
        say(heading)
        text = content if isinstance(content, str) else json.dumps(content, indent=2)
        for line in text.splitlines():
            say(f"  {line}")
