"""``prism log decision``: what a model was asked, what it said, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._screen import Screen, note, plain, plain_table, pour, say, shown
from prism.errors import InputError
from prism.telemetry.events import DECISION, TRANSITION

if TYPE_CHECKING:
    from prism.runlog._prompts import Asked

_MOST_LISTED = 40


def decision(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run, or its log.")],
    record_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="The decision or text, such as agent_0001:3, the agent's third; without it they "
            "are listed.",
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="List those of one agent.")
    ] = None,
    round_: Annotated[
        int | None, typer.Option("--round", min=0, help="List those of one round.")
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON, with every request and reply as it was sent."),
    ] = False,
) -> None:
    """Show a decision or a text: the question, the prompt, the reply, and what came of it.

    Prompts and replies are there if the run was begun with --record-prompts.

    [bold]Examples[/bold]

    prism log decision runs/model --agent agent_0001

    prism log decision runs/model agent_0001:3

    prism log decision runs/model agent_0001:3 --json
    """
    from prism.runlog._prompts import find_asked, find_prompts
    from prism.runlog._reader import locate_log

    if record_id is None:
        _list(run, agent, round_, as_json=as_json)
        return
    if agent is not None or round_ is not None:
        raise InputError("--agent and --round choose what is listed: leave them out with an ID")

    asked, outcome = find_asked(run, record_id, note)
    folder = locate_log(run).parent
    found = find_prompts(folder, [record_id], note)
    record = found.get(record_id)
    served_by = None if record is None else record.get("same_request_as")
    served = {} if served_by is None else find_prompts(folder, [served_by], note)
    if as_json:
        data = {"id": record_id, "event": asked.event, "outcome": outcome, "record": record}
        more = {"request": served[served_by]} if served_by in served else {}
        pour(json.dumps({**data, **more}, indent=2) + "\n")
    else:
        _print(asked, outcome, record, served.get(str(served_by)))

    if record is None:
        note(_how_to_record(folder, record_id))


def _list(run: Path, agent: str | None, round_: int | None, *, as_json: bool) -> None:
    from prism.runlog._prompts import asked_in

    found = (
        asked
        for asked in asked_in(run, note, agent)
        if round_ is None or asked.event.get("round") == round_
    )
    if as_json:
        listed = [{"id": asked.id, "line": asked.line, **asked.event} for asked in found]
        pour(json.dumps(listed, indent=2) + "\n")
        return

    first = list(islice(found, _MOST_LISTED))
    if not first:
        whose = "" if agent is None else f" of agent {agent!r}"
        when = "" if round_ is None else f" in round {round_}"
        note(f"{run}: no decision or text{whose}{when}")
        return

    table = plain_table()
    for heading in ("id", "round", "tick", "what", "came out", "p", "source"):
        table.add_column(heading, overflow="fold")
    for asked in first:
        table.add_row(*map(plain, _row(asked)))

    Screen().print(table)
    left = sum(1 for _ in found)
    if left:
        note(f"and {left:,} more: choose with --agent and --round, or take --json")


def _row(asked: Asked) -> Iterator[str]:
    event = asked.event
    yield asked.id or "-"
    yield from (str(event.get(name, "")) for name in ("round", "tick"))
    if event["event"] == DECISION:
        yield f"{event.get('state')} on {event.get('trigger')}"
        yield str(event.get("chosen"))
        chance = _dict_of(event.get("probabilities")).get(str(event.get("chosen")))
        yield "" if chance is None else _number(chance)
    else:
        yield f"text {event.get('key')}"
        yield _brief(str(event.get("text")))
        yield ""

    yield str(event.get("source"))


def _print(
    asked: Asked,
    outcome: Mapping[str, Any] | None,
    record: Mapping[str, Any] | None,
    served: Mapping[str, Any] | None,
) -> None:
    from prism.runlog._prompts import choice_text

    event = asked.event
    screen = Screen()
    table = plain_table()
    table.add_column("what")
    table.add_column(plain(str(asked.id)), overflow="fold")
    for name, text in _facts(event, outcome):
        table.add_row(name, plain(text))

    screen.print(table)
    chances = _dict_of(event.get("probabilities"))
    if chances:
        _heading("Probabilities")
        for option, chance in chances.items():
            say(f"  {_number(chance)}  {option}")
    if record is None:
        return

    _text("Prompt" if record.get("asked") != "decision" else "Told", record.get("prompt"))
    _text("Question", choice_text(record))
    _text("Reply", record.get("reply"))
    if served is not None:
        _heading(f"Answered by the request of {served['id']}")

    _print_attempts((record if served is None else served).get("attempts", []))


def _facts(
    event: Mapping[str, Any], outcome: Mapping[str, Any] | None
) -> Iterator[tuple[str, str]]:
    if "round" in event:
        yield "when", f"round {event['round']}, tick {event.get('tick')}"

    yield "agent", str(event.get("agent_id"))
    if event["event"] == DECISION:
        yield "question", f"{event.get('state')} on {event.get('trigger')}"
        if event.get("context"):
            yield "about", json.dumps(event["context"], ensure_ascii=False)
        yield "options", ", ".join(map(str, _list_of(event.get("options"))))
        yield "chosen", str(event.get("chosen"))
    else:
        yield "text", str(event.get("key"))

    yield "source", _source(event)
    if event.get("said"):
        yield "said", str(event["said"])
    if "latency" in event:
        yield "cost", _cost(event)

    yield "came of it", _what_came(event, outcome)


def _source(event: Mapping[str, Any]) -> str:
    words = {
        "cache": "cache: an earlier run had asked the same",
        "replay": "replay: the log of an earlier run",
        "fallback": "fallback: nobody chose",
    }
    source = str(event.get("source"))
    reason = f" ({event['reason']})" if event.get("reason") else ""
    return f"{words.get(source, source)}{reason}"


def _cost(event: Mapping[str, Any]) -> str:
    parts = [f"{_number(event['latency'])} s", f"requests: {event.get('attempts')}"]
    if event.get("model"):
        where = f" at {event['host']}" if event.get("host") else ""
        parts.append(f"{event['model']}{where}")

    return ", ".join([*parts, *_tokens(event)])


def _tokens(of: Mapping[str, Any]) -> Iterator[str]:
    for name, verb in (("input_tokens", "read"), ("output_tokens", "written")):
        if of.get(name) is not None:
            yield f"{of[name]} tokens {verb}"


def _what_came(event: Mapping[str, Any], outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return "nothing: the log ends before"

    when = f" (round {outcome['round']}, tick {outcome.get('tick')})" if "round" in outcome else ""
    name = outcome["event"]
    if name == TRANSITION:
        moved = f"{outcome.get('from_state')} to {outcome.get('to_state')}"
        other = "" if _is_of(event, outcome) else ", which is another question's"
        return f"the transition from {moved} on {outcome.get('trigger')}{other}{when}"
    if event["event"] == DECISION:
        return f"discarded: the agent was in {outcome.get('now_in')} by then{when}"

    told = {key: outcome[key] for key in ("step", "outcome", "moved_to") if outcome.get(key)}
    return f"{name} {json.dumps(told, ensure_ascii=False) if told else ''}{when}"


def _is_of(event: Mapping[str, Any], outcome: Mapping[str, Any]) -> bool:
    if event["event"] != DECISION:
        return True

    asked = (event.get("state"), event.get("trigger"), event.get("chosen"))
    return asked == tuple(outcome.get(name) for name in ("from_state", "trigger", "to_state"))


def _print_attempts(attempts: list[Mapping[str, Any]]) -> None:
    _heading("Attempts" if attempts else "No request was sent")
    for number, attempt in enumerate(attempts, start=1):
        seconds = attempt.get("seconds")
        parts = [str(attempt.get("began")), "" if seconds is None else f"{_number(seconds)} s"]
        if attempt.get("model"):
            parts.append(f"{attempt['model']} at {attempt.get('host', 'its server')}")

        say(f"  {number}. {', '.join(filter(None, [*parts, *_tokens(attempt)]))}")
        if attempt.get("fault"):
            say(f"     failed: {attempt['fault']}")
        if attempt.get("reply"):
            _lines(str(attempt["reply"]), indent="     ")


def _number(value: Any) -> str:
    # a log may hold anything
    return f"{value:.3f}" if isinstance(value, (int, float)) else str(value)


def _dict_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(heading: str, content: Any) -> None:
    if content is None:
        return

    _heading(heading)
    text = (
        content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
    )
    _lines(text, indent="  ")


def _heading(text: str) -> None:
    say("")
    say(text)


def _lines(text: str, indent: str) -> None:
    for line in text.splitlines():
        say(f"{indent}{line}")


def _brief(text: str, most: int = 60) -> str:
    line = shown(text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _how_to_record(folder: Path, record_id: str) -> str:
    """Say why there is no prompt, and how to get one."""
    from prism.runlog._prompts import PROMPTS_NAME
    from prism.runs._folder import SUMMARY_NAME, read_summary

    if (folder / PROMPTS_NAME).is_file():
        return f"{folder / PROMPTS_NAME} has no record of it: it is not written yet, or lost"

    recorded = None
    if (folder / SUMMARY_NAME).is_file():
        recorded = read_summary(folder)["config"].get("replay")
    if recorded is not None:
        again = f"prism log decision {quote(str(recorded))} {quote(record_id)}"
        return f"its answer was taken from another run; see: {again}"

    return f"{folder} has no prompts: a run keeps them with --record-prompts (and --out)"
