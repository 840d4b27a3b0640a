"""``prism log decision``: what a model was asked, what it said, and the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import AsJson
from prism.cli._screen import note, pour_json, print_facts, print_table, say, shortened
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.runlog._prompts import Asked

_MOST_LISTED = 40


def decision(
    names: Annotated[list[str], typer.Argument(metavar="[ID] RUN")],
    agent: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    round_: Annotated[int | None, typer.Option("--round", min=0)] = None,
    as_json: AsJson = False,
) -> None:
    """Show a decision or a text: the question, the prompt, the reply, and the result.

    Prompts and replies are in the journal of a run that is kept; --json has every
    request and reply as it was sent.

    Options:
        names: Folder of the run, or its log; before it a decision or text, such as agent_0001:3,
            the agent's third. Without one, all are listed.
        agent: List only those of this agent.
        round_: List only those of this round.

    [bold]Examples[/bold]

    prism log decision runs/model --agent agent_0001

    prism log decision agent_0001:3 runs/model

    prism log decision agent_0001:3 runs/model --json
    """
    if len(names) > 2:
        raise InputError(f"takes an ID and a run, not {len(names)} names: {', '.join(names)}")

    record_id, run = None, Path(names[-1])
    if len(names) == 2 and names[0]:
        record_id, [run] = in_order(names[0], [run])
    if record_id is None:
        list_decisions(run, agent, round_, as_json=as_json)
        return
    if agent is not None or round_ is not None:
        raise InputError("--agent and --round select what is listed: leave them out with an ID")

    _show(run, record_id, as_json=as_json)


def in_order(name: str, runs: list[Path]) -> tuple[str, list[Path]]:
    """Return an agent or an ID, and runs, even if it was named among or after the runs."""
    others = [each for each in runs if not each.exists()]
    if len(others) != 1 or not Path(name).exists():
        return name, runs

    return str(others[0]), [Path(name), *(each for each in runs if each is not others[0])]


def _show(run: Path, record_id: str, *, as_json: bool) -> None:
    """Print one decision or text, as tables or as JSON."""
    from prism.runlog._prompts import find_answers, find_asked
    from prism.runlog._reader import locate_log

    asked, outcome = find_asked(run, record_id, note)
    folder = locate_log(run).parent
    found = find_answers(folder, [record_id], note)
    record = found.get(record_id)
    served_by = None if record is None else record.get("same_request_as")
    served = {} if served_by is None else find_answers(folder, [served_by], note)
    if as_json:
        data = {"id": record_id, "event": asked.event, "outcome": outcome, "record": record}
        more = {"request": served[served_by]} if served_by in served else {}
        pour_json({**data, **more})
    else:
        print_facts(str(asked.id), dict(_facts(asked.event, outcome)))
        for line in _parts(asked.event, record, served.get(str(served_by))):
            say(line)

    if record is None:
        note(_how_to_record(folder, record_id))


def list_decisions(run: Path, agent: str | None, round_: int | None, *, as_json: bool) -> None:
    """Print the decisions and texts of a run, as a table or as JSON."""
    from prism.runlog._prompts import asked_in

    found = asked_in(run, note, agent)
    if round_ is not None:
        found = (asked for asked in found if asked.event.get("round") == round_)
    if as_json:
        pour_json([{"id": asked.id, "line": asked.line, **asked.event} for asked in found])
        return

    first = list(islice(found, _MOST_LISTED))
    if not first:
        note(f"{run}: no decision or text{_chosen(agent, round_)}")
        return

    headings = ("id", "round", "tick", "what", "came out", "p", "source")
    print_table(map(_row, first), *headings)
    left = sum(1 for _ in found)
    if left:
        note(f"and {left:,} more: select with --agent and --round, or use --json")


def _chosen(agent: str | None, round_: int | None) -> str:
    whose = "" if agent is None else f" of agent {agent!r}"
    return whose if round_ is None else f"{whose} in round {round_}"


def _row(asked: Asked) -> tuple[str, ...]:
    from prism.runlog._words import words_of

    event = asked.event
    text = event.get("text")
    out = "-" if text is None else shortened(words_of(str(text)), 57)
    what, chance = f"text {event.get('key')}", None
    if _is_decision(event):
        what, out = f"{event.get('state')} on {event.get('trigger')}", str(event.get("chosen"))
        chance = _dict_of(event.get("probabilities")).get(out)

    when = (str(event.get(name, "")) for name in ("round", "tick"))
    share = "" if chance is None else _number(chance)
    return asked.id or "-", *when, what, out, share, str(event.get("source"))


def _parts(
    event: Mapping[str, Any],
    record: Mapping[str, Any] | None,
    served: Mapping[str, Any] | None,
) -> Iterator[str]:
    """Return the lines of question and answer, each part below its heading."""
    chances = _dict_of(event.get("probabilities"))
    if chances:
        lines = [f"{_number(chance)}  {option}" for option, chance in chances.items()]
        yield from _part("Probabilities", lines)
    if record is None:
        return

    contents = {
        "Prompt": record.get("prompt"),
        "Reply": record.get("reply"),
    }
    for heading, content in contents.items():
        if content is not None:
            yield from _part(heading, _text_of(content).splitlines())
    if served is not None:
        yield from _part(f"Answered by the request of {served['id']}")

    attempts = (record if served is None else served).get("attempts", [])
    heading = "Attempts" if attempts else "No request was sent"
    yield from _part(heading, _attempt_lines(attempts, record.get("reply")))


def _part(heading: str, lines: Iterable[str] = ()) -> Iterator[str]:
    yield from ("", heading)
    yield from (f"  {line}" for line in lines)


def _facts(
    event: Mapping[str, Any], outcome: Mapping[str, Any] | None
) -> Iterator[tuple[str, str]]:
    if "round" in event:
        yield "when", f"round {event['round']}, tick {event.get('tick')}"

    yield "agent", str(event.get("agent_id"))
    if _is_decision(event):
        yield "question", f"{event.get('state')} on {event.get('trigger')}"
        if event.get("context"):
            from prism.runlog._words import in_words

            yield "about", in_words(event["context"])
        options = event.get("options")
        yield "options", ", ".join(map(str, options if isinstance(options, list) else ()))
        yield "chosen", str(event.get("chosen"))
    else:
        yield "text", str(event.get("key"))

    yield "source", _source(event)
    if event.get("said"):
        yield "said", str(event["said"])
    if "latency" in event:
        requests = f"requests: {event.get('attempts')}"
        yield "cost", _cost(event, f"{_number(event['latency'])} s", requests)

    yield "came of it", _what_came(event, outcome)


def _source(event: Mapping[str, Any]) -> str:
    words = {
        "cache": "cache: the run has asked the same question before",
        "replay": "replay: the log of an earlier run",
        "fallback": f"fallback: nobody {'chose' if _is_decision(event) else 'wrote'}",
    }
    source = str(event.get("source"))
    reason = f" ({event['reason']})" if event.get("reason") else ""
    return f"{words.get(source, source)}{reason}"


def _cost(of: Mapping[str, Any], *parts: str, at: str = "") -> str:
    """Return what a question or a request took: its parts, the model, its host and the tokens."""
    found = [*parts]
    if of.get("model"):
        host = of.get("host") or at
        found.append(f"{of['model']} at {host}" if host else str(of["model"]))
    for name, verb in (("input_tokens", "read"), ("output_tokens", "written")):
        if of.get(name) is not None:
            found.append(f"{of[name]} tokens {verb}")

    return ", ".join(filter(None, found))


def _what_came(event: Mapping[str, Any], outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        from prism.runlog._prompts import is_to_stay

        stayed = f"it stayed in {event.get('state')}"
        return f"nothing: {stayed if is_to_stay(event) else 'the log ends before'}"

    when = f" (round {outcome['round']}, tick {outcome.get('tick')})" if "round" in outcome else ""
    from prism.telemetry.events import TRANSITION

    name = outcome["event"]
    if name == TRANSITION:
        moved = f"{outcome.get('from_state')} to {outcome.get('to_state')}"
        other = "" if _is_of(event, outcome) else ", which is another question's"
        return f"transition from {moved} on {outcome.get('trigger')}{other}{when}"
    if _is_decision(event):
        return f"discarded: the agent was already in {outcome.get('now_in')}{when}"

    from prism.runlog._words import in_words

    told = {key: outcome[key] for key in ("step", "outcome", "moved_to") if outcome.get(key)}
    return f"{name}{f' ({in_words(told)})' if told else ''}{when}"


def _is_decision(event: Mapping[str, Any]) -> bool:
    from prism.telemetry.events import DECISION

    return bool(event["event"] == DECISION)


def _is_of(event: Mapping[str, Any], outcome: Mapping[str, Any]) -> bool:
    asked = (event.get("state"), event.get("trigger"), event.get("chosen"))
    came = tuple(outcome.get(name) for name in ("from_state", "trigger", "to_state"))
    return not _is_decision(event) or asked == came


def _text_of(content: Any) -> str:
    is_text = isinstance(content, str)
    return content if is_text else json.dumps(content, indent=2, ensure_ascii=False)


def _attempt_lines(attempts: list[Mapping[str, Any]], reply: Any) -> Iterator[str]:
    """Return the cost of each request, and its reply unless that is shown already."""
    from prism.runlog._words import said_in

    for number, attempt in enumerate(attempts, start=1):
        seconds = attempt.get("seconds")
        took = "" if seconds is None else f"{_number(seconds)} s"
        yield f"{number}. {_cost(attempt, str(attempt.get('began')), took, at='its server')}"
        if attempt.get("fault"):
            yield f"   failed: {attempt['fault']}"
        said = said_in(str(attempt.get("reply") or ""))
        yield from (f"   {line}" for line in said.splitlines() if said != reply)


def _number(value: Any) -> str:
    # a log may hold anything
    return f"{value:.3f}" if isinstance(value, (int, float)) else str(value)


def _dict_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _how_to_record(folder: Path, record_id: str) -> str:
    """Explain why there is no prompt, and where there is one."""
    from prism.runs._folder import SUMMARY_NAME, read_summary

    recorded = None
    if (folder / SUMMARY_NAME).is_file():
        recorded = read_summary(folder)["config"].get("replay")
    if recorded is not None:
        again = f"prism log decision {quote(record_id)} {quote(str(recorded))}"
        return f"its answer came from another run; see: {again}"

    return f"{folder} has no prompt of it: no model was asked"
