"""``prism log decision``: what a person and a program see of one decision."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prism.testing import Asked, FakeOllama
from tests.kit.commands import Prism

NEITHER = "\x1b[31mneither"


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOllama]:
    """Return a server whose replies to the first agent of a run name no option, however asked."""
    first: list[str] = []

    def choose(asked: Asked) -> str:
        lines = asked.prompt.splitlines()
        agent = next(line for line in lines if line.startswith("You are "))
        first.append(agent)
        return NEITHER if agent == first[0] else asked.options[0]

    with FakeOllama(models=["tiny"], choose=choose) as running:
        yield running


@pytest.fixture(scope="module")
def recorded(server: FakeOllama, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with its prompts."""
    return simulated(server, tmp_path_factory.mktemp("recorded") / "run")


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


def simulated(server: FakeOllama, folder: Path, *options: str) -> Path:
    """Make a run of a model, and return its folder."""
    folder.parent.mkdir(exist_ok=True)
    (folder.parent / "model.toml").write_text('mode = "chat"')
    asking = ("--model", f"ollama:tiny@{server.url}", "--model-file", "model.toml")
    size = ("--agents", 8, "--rounds", 3, "--seed", 5)
    said = Prism(folder.parent)("simulate", *size, *asking, "--out", folder, *options)
    assert said.status == 0, said.err
    return folder


def ids(log: Prism, folder: Path) -> list[str]:
    return [str(row["id"]) for row in log("decision", folder, "--json").rows]


@pytest.mark.slow
def test_a_decision_is_shown_in_full(recorded: Path, log: Prism) -> None:
    """Question, prompt, reply, attempts and the transition stand there, readable in 80 columns."""
    *_, last = ids(log, recorded)
    said = log("decision", last, recorded)
    assert (said.status, said.err) == (0, "")
    agent = last.rpartition(":")[0]
    for part in (f"You are {agent}", '{"next_state": ', "came of it", "input_tokens"):
        assert part in said.out
    assert f"{agent}" in said.out.splitlines()[1]


@pytest.mark.slow
def test_a_fallback_shows_the_reply_that_was_of_no_use(recorded: Path, log: Prism) -> None:
    """What the model said instead is shown, without what a terminal would obey."""
    fallbacks = [
        row for row in log("decision", recorded, "--json").rows if row["source"] == "fallback"
    ]
    said = log("decision", fallbacks[0]["id"], recorded)
    assert "neither" in said.out
    assert "fallback" in said.out
    assert "\x1b" not in said.out


def test_json_has_everything(recorded: Path, log: Prism) -> None:
    """A program gets the event, the record with the prompt, and the transition."""
    first, *_ = ids(log, recorded)
    found = json.loads(log("decision", first, recorded, "--json").out)
    assert found["event"]["decision_id"] == found["record"]["id"] == found["id"] == first
    assert found["outcome"]["event"] == "statechart.transition"
    assert found["outcome"]["to_state"] == found["event"]["chosen"]
    assert "Respond with JSON only" in found["record"]["prompt"]


@pytest.mark.slow
def test_decisions_are_listed_by_agent_and_round(recorded: Path, log: Prism) -> None:
    """The list has one line for each, of one agent or round where asked, and fits 80 columns."""
    rows = log("decision", recorded, "--json").rows
    agent = rows[0]["agent_id"]
    of_agent = log("decision", recorded, "--agent", agent, "--json").rows
    assert of_agent == [row for row in rows if row["agent_id"] == agent]
    of_round = log("decision", recorded, "--round", 2, "--json").rows
    assert of_round == [row for row in rows if row["round"] == 2] != []
    said = log("decision", recorded)
    assert max(len(line.rstrip()) for line in said.out.splitlines()) <= 80
    assert all(row["id"] in said.out for row in rows[:20])
    assert "no rows" in log("decision", recorded, "--agent", "nobody").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("agent_0001:99",), "lists them"),
        (("nonsense",), "lists them"),
        (("agent_0001:1", "--round", 2), "leave them out with an ID"),
    ],
)
def test_misuse_is_told(arguments: tuple[str, ...], said: str, recorded: Path, log: Prism) -> None:
    """An id that is not there, or options that do not go together, are refused with the mend."""
    ended = log("decision", *arguments[:1], recorded, *arguments[1:])
    assert (ended.status, said in ended.err) == (2, True)


def asked(chosen: str, state: str = "calm", trigger: str = "hears", **more: object) -> str:
    """Return the line of a decision of Ann's."""
    where = {"agent_id": "ann", "state": state, "trigger": trigger, "options": ["calm", "loud"]}
    event = {"event": "reasoner.decision", "round": 1, "tick": 1, **where, "chosen": chosen}
    return json.dumps({**event, "source": "policy", "decision_id": "ann:1", **more})


def moved(before: str, after: str, trigger: str = "hears") -> str:
    """Return the line of a transition of Ann's, three rounds later."""
    move = {"from_state": before, "to_state": after, "trigger": trigger}
    return json.dumps({"event": "statechart.transition", "round": 4, "agent_id": "ann", **move})


def discarded(chosen: str) -> str:
    """Return the line which says that an answer came too late."""
    told = {"asked_in": "calm", "now_in": "loud", "chosen": chosen, "trigger": "hears"}
    return json.dumps({"event": "statechart.answer_discarded", "agent_id": "ann", **told})


@pytest.mark.parametrize(
    ("lines", "came"),
    [
        ([asked("calm"), moved("calm", "loud")], "nothing: it stayed in calm"),
        ([asked("calm"), asked("loud"), moved("calm", "loud")], "nothing: it stayed in calm"),
        ([asked("calm")], "nothing: it stayed in calm"),
        ([asked("calm", source="fallback")], "nothing: it stayed in calm"),
        ([asked("calm"), moved("calm", "calm")], "transition from calm to calm on hears"),
        (
            [asked("calm"), asked("loud", "sure", "sees"), discarded("calm")],
            "discarded: the agent was already in loud",
        ),
        ([asked("calm"), discarded("loud")], "nothing: it stayed in calm"),
        ([asked("loud"), discarded("loud")], "discarded: the agent was already in loud"),
        ([asked("loud"), moved("calm", "loud")], "transition from calm to loud on hears (round 4"),
        ([asked("loud"), moved("calm", "sure", "sees")], "which is another question's (round 4"),
        ([asked("loud")], "nothing: the log ends before"),
    ],
)
@pytest.mark.sampled(6)
def test_what_came_of_a_decision_is_its_own(lines: list[str], came: str, log: Prism) -> None:
    """A decision to stay comes to nothing, whatever the agent does later, unless the log says."""
    (log.folder / "events.jsonl").write_text("\n".join([*lines, ""]))
    facts = " ".join(log("decision", "ann:1", "events.jsonl").out.split())
    assert came in facts.partition("came of it")[2]
    outcome = json.loads(log("decision", "ann:1", "events.jsonl", "--json").out)["outcome"]
    assert (outcome is None) == came.startswith("nothing")


def written(number: int, **more: object) -> str:
    """Return the line of a text of Ann's."""
    what = {"event": "text.written", "agent_id": "ann", "key": "reply", "text_id": f"ann:{number}"}
    return json.dumps({"round": 1, "tick": number, **what, **more})


def test_a_text_is_shown_with_who_wrote_it_and_what_came_of_it(log: Prism) -> None:
    """A text served by another's request has its attempts, and one that failed is told as none."""
    step = {"step": "write", "outcome": "failed", "moved_to": "end"}
    ended = {"event": "workflow.step_ended", "agent_id": "ann", "round": 1, "tick": 2, **step}
    lines = [
        written(1, text="Hello", source="model", latency=1.5, attempts=2),
        written(2, text="Hello", source="cache"),
        json.dumps(ended),
        written(3, text="Well", source="fallback", reason="too slow"),
        written(4, text=None, source="failed", reason="too slow"),
    ]
    (log.folder / "events.jsonl").write_text("\n".join([*lines, ""]))
    answers = [
        {"id": "ann:1", "prompt": "Greet", "reply": "Hello"},
        {"id": "ann:2", "prompt": "Greet", "reply": "Hello"},
    ]
    (log.folder / "answers.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in answers))

    def shown(number: int) -> str:
        return " ".join(log("decision", f"ann:{number}", "events.jsonl").out.split())

    step_ended = "came of it workflow.step_ended (step write, outcome failed, moved_to end)"
    assert f"{step_ended} (round 1, tick 2)" in shown(2)
    assert "Reply Hello" in shown(2)
    assert "source fallback reason too slow" in shown(3)
    rows = [line.split() for line in log("decision", "events.jsonl").out.splitlines()]
    assert ["ann:4", "1", "4", "text", "reply", "-", "-", "failed"] in rows
