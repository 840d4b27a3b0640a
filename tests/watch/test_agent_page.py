"""What the page of an agent and of a thread say of a decision, and of what came of it."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.kit import make
from tests.kit.visits import Visitor, visiting


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Yield a browser of a run in which a model decides about a post and templates write."""
    first, second = {"round": 1, "tick": 1}, {"round": 1, "tick": 2}
    about = {"context": {"post_id": "p1"}, "source": "model", "model": "small"}
    events = [
        make.started(parameters={"engagement": 0.25}),
        *(make.joined(name) for name in ("ada", "bob")),
        make.post("bob", "p1", **first),
        make.decision("ada", ["write", "scroll"], "write", **about, **first),
        make.post("ada", "p2", "p1", "p1", **second),
        make.decision("ada", ["write", "scroll"], "scroll", **about, **second),
        make.post("ada", "p3", **second),
        make.like("ada", "p1", "bob", **second),
        make.decision("bob", ["a", "b"], "b", source="fallback", reason="late", **second),
        make.move("ada", "idle", "scroll", round=2, tick=1),
        *(make.move("cem", "idle", "scroll", round=2, tick=tick) for tick in range(1, 303)),
    ]
    log = tmp_path_factory.mktemp("decided") / "real" / "events.jsonl"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    with visiting(log.parent) as visitor:
        yield visitor


def test_a_decision_says_what_it_was_about_and_what_was_chosen(client: Visitor) -> None:
    """The last decision is first, with its options, its source and why it fell back."""
    last, first = client.html("/agent", agent="ada", round=1)["what-it-was-asked"].split(
        "</details>"
    )[:2]
    assert "post_id p1" in first
    assert re.findall(r"<li>(\w+) <b>chosen</b>", first) == ["write"]
    assert re.findall(r"<li>(\w+) <b>chosen</b>", last) == ["scroll"]
    assert "round 1, tick 2: a on go, chose scroll (model)" in last
    assert "what-it-was-asked" not in client.html("/agent", agent="ada", round=0)
    assert (
        "<p>Reason</p><pre>late</pre>"
        in client.html("/agent", agent="bob", round=1)["what-it-was-asked"]
    )


def test_the_story_leads_to_every_round_and_a_round_without_events_says_so(
    client: Visitor,
) -> None:
    """What an agent did in the round stands before what it did in the whole run."""
    html = client.html("/agent", agent="ada", round=2)
    assert set(re.findall(r'data-round="(\d)"', html["all-that-it-did"])) == {"0", "1", "2"}
    assert set(re.findall(r'data-round="(\d)"', html["what-it-did"])) == {"2"}
    assert "Nothing." in client.html("/agent", agent="bob", round=2)["what-it-did"]


def test_of_a_long_story_the_last_is_told(client: Visitor) -> None:
    """Of more than 300 events the last are listed."""
    story = client.html("/agent", agent="cem", round=2)["all-that-it-did"]
    ticks = [int(tick) for tick in re.findall(r"round 2, tick (\d+)<", story)]
    assert ticks == [*range(302, 2, -1)]


def test_a_fallback_is_a_fault(client: Visitor) -> None:
    """The head counts it, and its round has it before what else happened."""
    assert client.ask("/head")["faults"] == 1
    html = client.html("/round", round=1)
    assert [*html][-2:] == ["what-went-wrong", "what-happened"]
    assert "fallback" in html["what-went-wrong"]
