"""``prism log decision``: what a model was asked, what it said, and the result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import AsJson
from prism.cli._screen import note, print_facts, print_json, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.analysis import Log

_DECISION = "reasoner.decision"
_TRANSITION = "statechart.transition"

_ADDED = ("run", "line", "keys")
_CUT = "nothing: the log ends before"
_LEFT_OUT = ("event", "level", "timestamp", "chart")

Record = Mapping[str, Any]


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
    """Show a decision or a text: the question, the prompt, the reply, and the result.

    Prompts and replies are in the journal of a run that is kept; `--json` has every request and
    reply as it was sent.

    **Examples**

    * `prism log decision runs/model --agent agent_0001`

    * `prism log decision agent_0001:3 runs/model`
    """
    *ids, run = names
    if len(ids) > 1:
        raise InputError(f"takes an ID and a run, not {len(names)} names: {', '.join(names)}")
    if not ids:
        _list(Path(run), agent, round_, as_json=as_json)
    elif agent is not None or round_ is not None:
        raise InputError("--agent and --round select what is listed: leave them out with an ID")
    else:
        _show(Path(run), ids[0], as_json=as_json)


_ASKED = """
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
_OUTCOME = """
from events where agent_id = $agent and line > $line and ($text or event in
('statechart.transition', 'statechart.answer_discarded')) order by line limit 1
"""


def _list(run: Path, agent: str | None, round_: int | None, *, as_json: bool) -> None:
    """Print the decisions and texts of a run, as a table or as JSON."""
    from prism.cli._tables import open_logs, write_table

    asked = open_logs([run]).sql(_ASKED, agent=agent, round=round_)
    shown = ("id", "round", "tick", "what", "came out", "p", "source")
    write_table(asked, None, [run], as_json=as_json, shown=shown)


def _events(log: Log, query: str, **values: Any) -> list[dict[str, Any]]:
    """Return events as they are in the log, without the keys that they do not have."""
    table = log.sql(query, **values)
    is_json = [str(kind) == "JSON" for kind in table.types]
    return [
        {
            name: json.loads(value) if parse else value
            for name, value, parse in zip(table.columns, row, is_json, strict=True)
            if value is not None and name not in _ADDED
        }
        for row in table.fetchall()
    ]


def _show(run: Path, record_id: str, *, as_json: bool) -> None:
    """Print one decision or text, as tables or as JSON."""
    from prism.cli._tables import open_logs
    from prism.runlog._answers import find_answers
    from prism.runlog._reader import locate_log

    log, folder = open_logs([run]), locate_log(run).parent
    found = log.sql(f"select line, agent_id {_ONE}", id=record_id).fetchall()
    if not found:
        problem = f"holds no decision or text {record_id!r}: 'prism log decision {run}' lists them"
        raise InputError(problem, path=run)
    event, *_ = _events(log, _ONE, id=record_id)
    line, agent = found[0]
    about = {"line": line, "agent": agent, "text": event["event"] != _DECISION}
    outcome = next(iter(_events(log, _OUTCOME, **about)), None)
    if outcome is not None and _is_stay(event) and _decided(event) != _made(outcome):
        outcome = None
    record = find_answers(folder, [record_id], note).get(record_id)
    if as_json:
        both = {"event": event, "outcome": outcome}
        print_json({"id": record_id, **both, "record": record})
        return

    facts = {name: _in_words(value) for name, value in event.items() if name not in _LEFT_OUT}
    print_facts(record_id, {**facts, "came of it": _result_of(event, outcome)})
    if record is None:
        note(f"{folder} has no prompt of it: no model was asked in this run")
        return
    parts = {"Prompt": record.get("prompt"), "Reply": record.get("reply")}
    for heading, content in parts.items():
        if content is not None:
            say("")
            say(heading)
            for text in _lines_of(content):
                say(f"  {text}")


def _lines_of(content: Any) -> list[str]:
    if isinstance(content, str):
        return content.splitlines()
    if isinstance(content, Mapping):
        return [f"{name}: {value}" for name, value in content.items()]
    return json.dumps(content, indent=2, ensure_ascii=False).splitlines()


def _in_words(value: Any) -> str:
    from prism.runlog._reader import in_words

    return in_words(value)


def _decided(event: Record) -> list[Any]:
    return [event.get(name) for name in ("state", "trigger", "chosen")]


def _made(outcome: Record) -> list[Any]:
    """Return what an outcome says of the decision that it came of."""
    is_move = outcome["event"] == _TRANSITION
    names = ("from_state", "trigger", "to_state") if is_move else ("asked_in", "trigger", "chosen")
    return [outcome.get(name) for name in names]


def _is_stay(event: Record) -> bool:
    return event["event"] == _DECISION and event.get("chosen") == event.get("state")


def _result_of(event: Record, outcome: Record | None) -> str:
    if outcome is None:
        return f"nothing: it stayed in {event['state']}" if _is_stay(event) else _CUT
    when = f" (round {outcome['round']}, tick {outcome.get('tick')})" if "round" in outcome else ""
    if outcome["event"] == _TRANSITION:
        is_own = event["event"] != _DECISION or _decided(event) == _made(outcome)
        other = "" if is_own else ", which is another question's"
        source, trigger, target = _made(outcome)
        return f"transition from {source} to {target} on {trigger}{other}{when}"
    if event["event"] == _DECISION:
        return f"discarded: the agent was already in {outcome.get('now_in')}{when}"
    parts = {key: outcome[key] for key in ("step", "outcome", "moved_to") if outcome.get(key)}
    return f"{outcome['event']}{f' ({_in_words(parts)})' if parts else ''}{when}"
