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
def test_a_fallback_shows_the_reply_that_was_of_no_use(recorded: Path, log: Prism) -> None:
    """Each reply is shown with its prompt, without what a terminal would obey."""
    fallbacks = [
        row for row in log("decision", recorded, "--json").rows if row["source"] == "fallback"
    ]
    said = log("decision", fallbacks[0]["id"], recorded)
    first, again = said.out.split("Next prompt")
    assert "could not be used" not in first.partition("Prompt")[2]
    assert "could not be used" in again
    assert first.count("neither") > 0 < again.count("neither")
    assert fallbacks[0]["reason"]
    assert fallbacks[0]["reason"].split()[0] in said.out
    assert "fallback" in said.out
    assert "\x1b" not in said.out


def test_json_has_everything(recorded: Path, log: Prism) -> None:
    """A program gets the event, and the record with the prompt; a log alone has no prompts."""
    first, *_ = ids(log, recorded)
    found = json.loads(log("decision", first, recorded, "--json").out)
    assert found["event"]["decision_id"] == found["record"]["id"] == found["id"] == first
    assert found["event"]["chosen"] in found["event"]["options"]
    assert "Respond with JSON only" in found["record"]["prompt"]
    (log.folder / "sent.jsonl").write_bytes((recorded / "events.jsonl").read_bytes())
    assert "there is no answers.jsonl" in log("decision", first, "sent.jsonl").err


def test_an_unknown_id_is_refused(recorded: Path, log: Prism) -> None:
    """The message says what lists them."""
    for unknown in ("agent_0001:99", "nonsense"):
        ended = log("decision", unknown, recorded)
        assert (ended.status, "lists them" in ended.err) == (2, True)


def written(number: int, **more: object) -> str:
    """Return the line of a text of Ann's."""
    what = {"event": "text.written", "agent_id": "ann", "key": "reply", "text_id": f"ann:{number}"}
    return json.dumps({"round": 1, "tick": number, **what, **more})


def test_a_text_is_shown_with_who_wrote_it(log: Prism) -> None:
    """It has its prompt and reply; one that failed is told as none, with its reason."""
    lines = [
        written(1, text="Hello", source="model", latency=1.5, attempts=2),
        written(2, text="Well", source="fallback", reason="too slow"),
        written(3, text=None, source="failed", reason="too slow"),
    ]
    (log.folder / "events.jsonl").write_text("\n".join([*lines, ""]))
    again = {"reply": "", "prompt": "Greet. Answer"}
    answer = {"id": "ann:1", "prompt": "Greet", "reply": "Hello", "repairs": [again]}
    (log.folder / "answers.jsonl").write_text(f"{json.dumps(answer)}\n")

    def output_of(number: int) -> str:
        return " ".join(log("decision", f"ann:{number}", "events.jsonl").out.split())

    assert "Prompt Greet Useless reply Next prompt Greet. Answer Reply Hello" in output_of(1)
    assert "source fallback reason too slow" in output_of(2)
    rows = [line.split() for line in log("decision", "events.jsonl").out.splitlines()]
    assert ["ann:3", "1", "3", "text", "reply", "-", "-", "failed"] in rows
