"""What the page of an agent and of a thread say of a decision, and of what came of it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from prism.watch import watch
from tests.kit import make
from tests.kit.waiting import wait_until


def ask(client: httpx.Client, path: str, **query: Any) -> Any:
    return client.get(path, params=query).json()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
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
    watching = watch(log.parent)
    with httpx.Client(base_url=watching.url.partition("/?")[0], timeout=30) as client:
        assert client.get(watching.url).status_code == 200
        wait_until(lambda: (head := ask(client, "/head"))["read"] == head["size"] > 0)
        yield client
    watching.stop()


def html_of(client: httpx.Client, agent: str, number: int) -> dict[str, str]:
    sections = ask(client, "/agent", agent=agent, round=number)["sections"]
    return {each["anchor"]: each["html"] for each in sections}


def test_a_decision_says_what_it_was_about_and_what_was_chosen(client: httpx.Client) -> None:
    """The last decision is first, with its options, its source and why it fell back."""
    last, first = html_of(client, "ada", 1)["what-it-was-asked"].split("</details>")[:2]
    assert "post_id p1" in first
    assert re.findall(r"<li>(\w+) <b>chosen</b>", first) == ["write"]
    assert re.findall(r"<li>(\w+) <b>chosen</b>", last) == ["scroll"]
    assert "round 1, tick 2: a on go, chose scroll (model)" in last
    assert "<p>Reason</p><pre>late</pre>" in html_of(client, "bob", 1)["what-it-was-asked"]


def test_the_story_leads_to_every_round_and_a_round_without_events_says_so(
    client: httpx.Client,
) -> None:
    """What an agent did in the round stands before what it did in the whole run."""
    html = html_of(client, "ada", 2)
    assert set(re.findall(r'data-round="(\d)"', html["all-that-it-did"])) == {"0", "1", "2"}
    assert set(re.findall(r'data-round="(\d)"', html["what-it-did"])) == {"2"}
    assert "Nothing." in html_of(client, "bob", 2)["what-it-did"]


def test_of_a_long_story_the_last_is_told(client: httpx.Client) -> None:
    """Of more than 300 events the last are listed."""
    story = html_of(client, "cem", 2)["all-that-it-did"]
    ticks = [int(tick) for tick in re.findall(r"round 2, tick (\d+)<", story)]
    assert ticks == [*range(302, 2, -1)]


def test_the_head_says_how_many_faults_the_run_has(client: httpx.Client) -> None:
    """A fallback is a fault."""
    assert ask(client, "/head")["faults"] == 1
