"""One round as the page shows it: head, chart, numbers, messages and events of one instant."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kit import make
from tests.kit.visits import Visitor

Visit = Callable[[Any], Visitor]


def at(number: int, event: dict[str, Any], tick: int = 1) -> dict[str, Any]:
    return {**event, "round": number, "tick": tick}


def counts(client: Visitor, number: int, states: str = "xyz") -> dict[str, int]:
    """Return the agents in each state, which are as many on the chart as behind it."""
    html = client.html("/round", round=number)["the-chart"]
    found = {}
    for state in states:
        box = html.partition(f'data-state="{state}"')[2].partition("</g>")[0]
        agents = client.ask("/agents", round=number, state=state)["number"]
        assert f">{agents} agent" in box or not (agents or box)
        found[state] = agents
    return found


def test_agents_in_a_round_that_goes_on_are_counted_from_the_last_end(visit: Visit) -> None:
    """What closes a round comes after its states were counted."""
    states = {"x": 1, "y": 2}
    ended = {"event": "round.ended", "timestamp": "t", "round": 1, "states": states}
    client = visit(
        [
            make.started(agents=3),
            *(make.joined(agent, state) for agent, state in zip("abc", "xxy", strict=True)),
            at(1, make.move("a", "x", "y")),
            ended,
            at(1, make.move("a", "y", "x", trigger="round_ends"), tick=3),
            at(2, make.move("c", "y", "z")),
        ]
    )
    assert counts(client, 1) == {"x": 1, "y": 2, "z": 0}
    assert counts(client, 2) == {"x": 2, "y": 0, "z": 1}


def test_agents_of_a_loop_of_ones_own_are_counted_by_what_moves(visit: Visit) -> None:
    """Such a log has neither agents that join nor ends of rounds."""
    client = visit(
        [
            make.started(agents=2),
            at(1, make.move("a", "x", "y")),
            at(1, make.move("b", "x", "z")),
            at(2, make.move("a", "y", "z"), tick=2),
        ]
    )
    assert counts(client, 1) == {"x": 0, "y": 1, "z": 1}
    assert counts(client, 2) == {"x": 0, "y": 0, "z": 2}
    for tick, state in ((1, "y"), (2, "z")):
        found = client.ask("/agents", round=2, tick=tick, state=state)["agents"]
        assert ["a", 1] in found


def test_kinds_whose_states_have_one_name_are_counted_apart(visit: Visit) -> None:
    """Three wolves and a sheep that rest are three and one, and grass that never moved is one."""
    kinds = {"a": "wolf", "b": "wolf", "c": "wolf", "d": "sheep"}
    states = {"event": "round.ended", "timestamp": "t", "round": 1, "states": {"rests": 5}}
    client = visit(
        [
            make.started(agents=5, chart="wolf, sheep, grass"),
            *({**make.joined(name, "roams"), "chart": kind} for name, kind in kinds.items()),
            {**make.joined("e", "rests"), "chart": "grass"},
            *(
                at(1, {**make.move(name, "roams", "rests"), "chart": kind})
                for name, kind in kinds.items()
            ),
            states,
        ]
    )
    charts = client.html("/round", round=1)["the-chart"].split("data-chart=")[1:]
    shown = {part.split('"')[1]: part.partition('data-state="rests"')[2] for part in charts}
    for kind, count in (("wolf", 3), ("sheep", 1), ("grass", 1)):
        assert f">{count} agent" in shown[kind].partition("</g>")[0]
        behind = client.ask("/agents", round=1, state="rests", chart=kind)
        assert behind["number"] == count
        arrow = client.ask("/agents", round=1, source="roams", target="rests", chart=kind)
        assert arrow["number"] == count * (kind != "grass")


def test_what_was_said_is_a_transcript_of_the_round_and_of_each_agent(visit: Visit) -> None:
    """Messages stand in the order in which they were said; nothing speaks of posts."""

    def said(number: int, sender: str, receiver: str, content: str) -> dict[str, Any]:
        own = {"agent_id": sender, "receiver": receiver, "content": content}
        return at(number, make.event("message.sent", **own))

    client = visit(
        [
            make.started(world="Talk", chart=None),
            *(make.joined(name, "x") for name in ("ann", "di", "bo")),
            said(1, "ann", "di", "Hello!"),
            said(2, "di", "ann", "<b>Well?</b>"),
            said(2, "ann", "di", "Well."),
            said(2, "bo", "di", "And I?"),
        ]
    )
    view = client.ask("/round", round=2)
    html = client.html("/round", round=2)["messages"]
    places = [html.index(text) for text in ("&lt;b&gt;Well?", "Well.", "And I?")]
    assert places == sorted(places)
    assert "Hello!" not in html
    page = client.html("/agent", agent="ann", round=2)
    with_di = page["its-messages"].partition("<summary>With di: 3 messages")[2]
    assert with_di.index("Hello!") < with_di.index("Well?")
    assert "post" not in json.dumps(view).replace("data-post", "").lower()


def test_the_head_and_the_round_are_of_one_instant(visit: Visit, folder: Path) -> None:
    """Whatever round is asked for, the head that comes with it counts the same lines."""
    client = visit(folder)
    for number in ("", 1, 3):
        view = client.ask("/round", round=number)
        assert (view["head"]["rounds"], view["round"]) == (4, number or 4)
        assert view["head"]["read"] == view["head"]["size"]
