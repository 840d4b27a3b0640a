"""``prism log decision``: what a model was asked, what it said, and the result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import AsJson
from prism.cli._screen import note, print_facts, print_json, print_table, say, shortened
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.runlog._prompts import Asked

_MOST_LISTED = 40
_DECISION = "reasoner.decision"
_TRANSITION = "statechart.transition"

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


def _list(run: Path, agent: str | None, round_: int | None, *, as_json: bool) -> None:
    """Print the decisions and texts of a run, as a table or as JSON."""
    from prism.runlog._prompts import asked_in

    found = asked_in(run, note, agent)
    if round_ is not None:
        found = [asked for asked in found if asked.event.get("round") == round_]
    if as_json:
        print_json([{"id": asked.id, "line": asked.line, **asked.event} for asked in found])
        return

    if not found:
        note(f"{run}: no such decision or text")
        return
    rows = map(_row, found[:_MOST_LISTED])
    print_table(rows, "id", "round", "tick", "what", "came out", "p", "source")
    if (left := len(found) - _MOST_LISTED) > 0:
        note(f"and {left:,} more: select with --agent and --round, or use --json")


def _row(asked: Asked) -> tuple[Any, ...]:
    event = asked.event
    if event["event"] == _DECISION:
        what, out = f"{event.get('state')} on {event.get('trigger')}", str(event.get("chosen"))
        chance = _dict_of(event.get("probabilities")).get(out)
    else:
        text, chance = event.get("text"), None
        what = f"text {event.get('key')}"
        out = "-" if text is None else shortened(str(text), 57)
    when = (str(event.get(name, "")) for name in ("round", "tick"))
    return asked.id, *when, what, out, chance, event.get("source")


def _show(run: Path, record_id: str, *, as_json: bool) -> None:
    """Print one decision or text, as tables or as JSON."""
    from prism.runlog._prompts import find_answers, find_asked
    from prism.runlog._reader import locate_log

    asked = find_asked(run, record_id, note)
    folder = locate_log(run).parent
    record = find_answers(folder, [record_id], note).get(record_id)
    if as_json:
        print_json(
            {"id": record_id, "event": asked.event, "outcome": asked.outcome, "record": record}
        )
        return

    facts = {name: _in_words(value) for name, value in asked.event.items() if name not in _LEFT_OUT}
    print_facts(str(asked.id), {**facts, "came of it": _result_of(asked.event, asked.outcome)})
    if record is None:
        note(f"{folder} has no prompt of it: no model was asked in this run")
        return
    parts = {"Prompt": record.get("prompt"), "Reply": record.get("reply")}
    attempts = record.get("attempts", [])
    parts |= {f"Attempt {number}": each for number, each in enumerate(attempts, start=1)}
    for heading, content in parts.items():
        if content is not None:
            say("")
            say(heading)
            for line in _lines_of(content):
                say(f"  {line}")


def _lines_of(content: Any) -> list[str]:
    if isinstance(content, str):
        return content.splitlines()
    if isinstance(content, Mapping):
        return [f"{name}: {value}" for name, value in content.items()]
    return json.dumps(content, indent=2, ensure_ascii=False).splitlines()


def _in_words(value: Any) -> str:
    from prism.runlog._reader import in_words

    return in_words(value)


def _result_of(event: Record, outcome: Record | None) -> str:
    if outcome is None:
        is_stay = event["event"] == _DECISION and event.get("chosen") == event.get("state")
        return f"nothing: it stayed in {event['state']}" if is_stay else _CUT
    when = f" (round {outcome['round']}, tick {outcome.get('tick')})" if "round" in outcome else ""
    if outcome["event"] == _TRANSITION:
        source, target = outcome.get("from_state"), outcome.get("to_state")
        asked = (event.get("state"), event.get("trigger"), event.get("chosen"))
        is_own = event["event"] != _DECISION or asked == (source, outcome.get("trigger"), target)
        other = "" if is_own else ", which is another question's"
        return f"transition from {source} to {target} on {outcome.get('trigger')}{other}{when}"
    if event["event"] == _DECISION:
        return f"discarded: the agent was already in {outcome.get('now_in')}{when}"
    parts = {key: outcome[key] for key in ("step", "outcome", "moved_to") if outcome.get(key)}
    return f"{outcome['event']}{f' ({_in_words(parts)})' if parts else ''}{when}"


def _dict_of(value: Any) -> Record:
    # a log may hold anything
    return value if isinstance(value, dict) else {}
