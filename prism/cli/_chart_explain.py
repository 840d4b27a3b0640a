"""``prism chart explain``: the effect of an event on an agent in some state, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from prism.agents import SocialAgent
from prism.cli._chart_argument import ChartArgument, chart_from
from prism.cli._screen import pour, say
from prism.drawing import showable
from prism.errors import InputError, PrismError
from prism.files import parse_json
from prism.statechart import AgentState, Statechart
from prism.statechart.states import state_text

_MADE = ("moves", "stays")
"""Outcomes in which a transition is made; a loop stays in its state."""


def explain(
    chart: ChartArgument,
    trigger: Annotated[
        str, typer.Argument(metavar="TRIGGER", help="Name of the event.", show_default=False)
    ],
    state: Annotated[
        str, typer.Option("--state", metavar="STATE", help="State that the agent is in.")
    ],
    context: Annotated[
        str | None,
        typer.Option(
            "--context", metavar="JSON", help="Context of the event, which guards receive."
        ),
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="JSON",
            help="Fields of the agent, as a JSON object. A chart of social agents gets such an "
            "agent.",
        ),
    ] = "{}",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the explanation as JSON instead of lines.")
    ] = False,
) -> None:
    """Show every transition that an event could cause, the result of its guard, and the outcome.

    Exit status 0 if a transition would be made, 1 if not, 2 if the input is wrong.

    [bold]Examples[/bold]

    prism chart explain social_media decides --state evaluating --context 0.9

    prism chart explain social_media compose_done --state composing --agent
    '{"pending_action": "reply"}'
    """
    found = chart_from(chart)
    payload = None if context is None else _json("--context", context)
    subject = _agent(found, state, _json("--agent", agent))
    explanation = found.explain(subject, trigger, payload)
    if as_json:
        pour(json.dumps(explanation.to_dict(), indent=2) + "\n")
    else:
        for line in str(explanation).splitlines():
            say(showable(line))

    if explanation.outcome not in _MADE:
        raise typer.Exit(1)


def _json(option: str, text: str) -> Any:
    try:
        return parse_json(text)
    except InputError as error:
        raise InputError(error.problem, field=option) from None


def _agent(chart: Statechart[Any], state: str, fields: Any) -> Any:
    """Return a social agent if the chart is theirs, else an object with just these fields."""
    states = {state_text(member): member for member in chart.definition.states}
    if state not in states:
        raise InputError(
            f"chart {chart.name!r} has no state {state!r}: use one of {', '.join(states)}",
            field="--state",
        )

    if not isinstance(fields, Mapping):
        raise InputError(f"must be an object of fields, got {fields!r}", field="--agent")
    if "state" in fields:
        raise InputError("takes no 'state': --state gives it", field="--agent")

    named = {"agent_id": "agent", **fields}
    if set(states) <= set(AgentState) or set(AgentState) <= set(states):
        return _social_agent(states[state], named)

    return SimpleNamespace(**named, state=states[state])


def _social_agent(state: Enum, fields: dict[str, Any]) -> SocialAgent:
    class Agent(SocialAgent):
        state_type = type(state)

    pending = fields.pop("pending_action", None)
    try:
        made = Agent(**fields, state=state)
    except PrismError as error:
        raise InputError(str(error), field="--agent") from error
    except TypeError as error:  # a field that does not exist, or a value of a wrong type
        raise InputError(f"makes no social agent: {error}", field="--agent") from error

    made.pending_action = pending

    return made
