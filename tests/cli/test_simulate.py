"""``prism simulate`` as a user runs it."""

import json
import socket
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

import prism
from prism.agents import load_population
from prism.llm import AnswerCache
from prism.statechart import AgentState
from prism.testing import FakeOllama, Fault

DATA = Path(__file__).parents[1] / "data"
PERSONAS = DATA / "oasis" / "user_data_36.json"


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))


def test_personas_of_oasis_live(command: Any) -> None:
    """A run on the personas file has its 36 people in the log, and ends with the three tables."""
    ran = command("simulate", "--agents", PERSONAS, "--rounds", "4", "--out", "run")
    assert (ran.status, ran.err) == (0, "")
    joined = [
        event for event in events_of(command.folder / "run") if event["event"] == "agent.joined"
    ]
    people = load_population(PERSONAS).agents
    assert [(event["agent_id"], event["interests"]) for event in joined] == [
        (agent.agent_id, agent.interests) for agent in people
    ]
    summary = summary_of(command.folder / "run")
    assert summary["results"]["agents"] == 36
    assert summary["results"]["totals"]["agent_ticks"] == 36 * 4 * 12
    assert summary["results"]["totals"]["likes"] > 0
    assert "(36 agents)" in ran.out


def test_tables_show_the_results(command: Any) -> None:
    """Every state, every count of engagement and the five largest cascades stand in the tables."""
    ran = command("simulate", "--agents", "60", "--rounds", "5", "--out", "run")
    results = summary_of(command.folder / "run")["results"]
    rows = {
        " ".join(words[:-1]): words[-1] for words in map(str.split, ran.out.splitlines()) if words
    }
    lines = [line.split() for line in ran.out.splitlines()]
    for state in AgentState:
        assert [
            state.value,
            *(str(one["states"][state.value]) for one in results["rounds"]),
        ] in lines
    totals = results["totals"]
    for what in ("posts", "replies", "reshares", "likes", "transitions"):
        assert rows[what] == f"{totals[what]:,}"
    assert rows["decisions asked"] == rows["decisions answered"] == f"{totals['decisions_asked']:,}"
    assert rows["decisions that fell back"] == "0"
    assert rows["time-outs from resting"] == f"{totals['timeouts']['resting']:,}"
    assert len(results["cascades"]) == 5
    for one in results["cascades"]:
        wanted = [str(one[name]) for name in ("size", "depth", "breadth", "author_id")]
        assert any(line[:4] == wanted for line in lines)
    assert "run/events.jsonl" in ran.out
    assert "run/run.json" in ran.out


def test_json_is_the_summary(command: Any) -> None:
    """``--json`` prints exactly what is written to ``run.json``, and nothing else."""
    ran = command(
        "simulate", "--agents", "20", "--rounds", "2", "--seed", "7", "--json", "--out", "run"
    )
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (command.folder / "run" / "run.json").read_text(encoding="utf-8")
    assert list(json.loads(ran.out)) == ["prism", "schema", "config", "results"]


def test_summary_is_complete(command: Any) -> None:
    """The summary tells version, every option, and results that agree with the log."""
    command(
        "simulate", "--agents", "20", "--rounds", "3", "--ticks", "9", "--seed", "7", "--out", "run"
    )
    summary, events = summary_of(command.folder / "run"), events_of(command.folder / "run")
    assert summary["prism"] == prism.__version__
    assert summary["schema"] == events[0]["schema"] == 1
    assert summary["config"] == {
        "agents": "20",
        "posts": None,
        "rounds": 3,
        "ticks_per_round": 9,
        "seed": 7,
        "reasoner": "policy",
        "inputs": {},
    }
    names = Counter(event["event"] for event in events)
    totals = summary["results"]["totals"]
    assert totals["agent_ticks"] == 20 * 3 * 9
    assert totals["transitions"] == names["statechart.transition"]
    assert totals["decisions_asked"] == names["reasoner.decision"]
    assert totals["likes"] == names["post.liked"]
    assert len(summary["results"]["rounds"]) == names["round.ended"] == 3
    assert events[-1].items() >= totals.items()


def test_run_can_be_repeated(command: Any) -> None:
    """The same command writes the same bytes into another folder, and another seed other ones."""
    for folder, seed in (("one", "4"), ("same", "4"), ("other", "5")):
        command("simulate", "--agents", "30", "--rounds", "3", "--seed", seed, "--out", folder)
    one, same, other = (
        [(command.folder / folder / name).read_bytes() for name in ("events.jsonl", "run.json")]
        for folder in ("one", "same", "other")
    )
    assert one == same
    assert one[0] != other[0]


def test_nothing_is_written_without_a_folder(command: Any) -> None:
    """Without ``--out`` the results are shown and nothing is left on the disk."""
    ran = command("simulate", "--agents", "5", "--rounds", "1")
    assert ran.status == 0
    assert "Every transition is in" not in ran.out
    assert list(command.folder.iterdir()) == []


def test_posts_file_is_what_the_run_begins_with(command: Any) -> None:
    """The posts of ``--posts`` are published before the first round, and no made-up ones."""
    (command.folder / "people.jsonl").write_text(
        "".join(f'{{"agent_id": "{name}", "interests": ["art"]}}\n' for name in ("ann", "ben"))
    )
    (command.folder / "posts.jsonl").write_text(
        '{"author_id": "ann", "text": "Look.", "topics": ["art"], "post_id": "first"}\n'
        '{"author_id": "ben", "text": "Hm."}\n'
    )
    ran = command(
        "simulate",
        "--agents",
        "people.jsonl",
        "--posts",
        "posts.jsonl",
        "--rounds",
        "1",
        "--out",
        "run",
    )
    assert ran.status == 0
    posts = [
        event for event in events_of(command.folder / "run") if event["event"] == "post.published"
    ]
    begun = [
        (post["agent_id"], post["text"], post["topics"]) for post in posts if post["round"] == 0
    ]
    assert begun == [("ann", "Look.", ["art"]), ("ben", "Hm.", [])]
    assert posts[0]["post_id"] == "first"


def test_twitter_population_lives(command: Any) -> None:
    """A run on a Twitter population begins with the tweets of its file and uses its follow graph."""
    path = DATA / "twitter.csv"
    ran = command("simulate", "--agents", path, "--rounds", "2", "--out", "run")
    assert (ran.status, ran.err) == (0, "")
    population, events = load_population(path), events_of(command.folder / "run")
    begun = [
        event["text"]
        for event in events
        if event["event"] == "post.published" and event["round"] == 0
    ]
    assert begun == [post.text for post in population.posts] != []
    joined = {
        event["agent_id"]: event["following"]
        for event in events
        if event["event"] == "agent.joined"
    }
    assert joined == {agent.agent_id: len(agent.following) for agent in population.agents}


def test_model_on_a_server_decides(command: Any, ollama: Any) -> None:
    """With ``--reasoner ollama`` a real server is asked, with the model's name and a schema of the options."""
    ran = command(
        *("simulate", "--agents", PERSONAS, "--rounds", "1", "--out", "run"),
        *("--reasoner", "ollama", "--model", "tiny", "--host", ollama.url),
    )
    assert (ran.status, ran.err) == (0, "")
    totals = summary_of(command.folder / "run")["results"]["totals"]
    assert totals["decisions_answered"] == totals["decisions_asked"] == len(ollama.chats) > 0
    decisions = [
        event
        for event in events_of(command.folder / "run")
        if event["event"] == "reasoner.decision"
    ]
    assert {(event["source"], event["chosen"] == event["options"][0]) for event in decisions} == {
        ("model", True)
    }
    for request in ollama.chats:
        assert request["model"] == "tiny"
        assert request["format"] == {
            "type": "object",
            "properties": {
                "next_state": {
                    "type": "string",
                    "enum": ["composing", "engaging_like", "scrolling"],
                }
            },
            "required": ["next_state"],
        }
    assert totals["posts"] + totals["replies"] + totals["reshares"] > 0


def test_answers_outlast_a_locked_cache(command: Any, ollama: Any) -> None:
    """Answers for which another process holds the cache's file are written when the run ends, or that is told."""
    run = (
        *(
            "simulate",
            "--agents",
            PERSONAS,
            "--rounds",
            "1",
            "--ticks",
            "4",
            "--cache",
            "answers.db",
        ),
        *("--reasoner", "ollama", "--model", "tiny", "--host", ollama.url),
    )
    AnswerCache(command.folder / "answers.db").close()
    with sqlite3.connect(
        command.folder / "answers.db", isolation_level=None, check_same_thread=False
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        with command.start(*run, "--out", "run") as process:
            while not (command.folder / "run" / "events.jsonl").exists() and process.poll() is None:
                time.sleep(0.01)
            while b'"run.ended"' not in (command.folder / "run" / "events.jsonl").read_bytes():
                assert process.poll() is None
                time.sleep(0.01)
            other.execute("COMMIT")
            process.communicate()
    other.close()
    assert process.returncode == 0
    asked = len(ollama.chats)
    ran = command(*run)
    assert (ran.status, len(ollama.chats)) == (0, asked)


def test_unreachable_model_does_not_stop_a_run(command: Any) -> None:
    """Where nothing listens a run still ends well, and says how many decisions fell back and why."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        ran = command(
            *("simulate", "--agents", PERSONAS, "--rounds", "1", "--ticks", "3", "--out", "run"),
            *("--reasoner", "ollama", "--model", "tiny", "--host", url),
        )
    assert ran.status == 0
    assert ran.err.splitlines() == [
        f"prism: cannot reach {url} (All connection attempts failed): is 'ollama serve' running there?; "
        "its decisions will fall back (see: prism doctor)"
    ]
    totals = summary_of(command.folder / "run")["results"]["totals"]
    assert totals["decisions_answered"] == 0
    assert sum(totals["fallbacks"].values()) == totals["decisions_asked"] > 0
    assert all(url in reason for reason in totals["fallbacks"])
    shown = " ".join(ran.out.split())
    assert f"decisions that fell back {totals['decisions_asked']}" in shown
    assert any(
        f"Fallback taken {count} x: {reason}" in shown
        for reason, count in totals["fallbacks"].items()
    )


@pytest.mark.parametrize(
    ("given", "told"), [([], False), (["--think", "true"], True), (["--think", "low"], "low")]
)
def test_a_model_thinks_as_it_is_told(
    given: list[str], told: Any, command: Any, ollama: Any
) -> None:
    """With ``--think`` every question says whether the model may think; without it, that it may not."""
    ran = command(
        *("simulate", "--agents", PERSONAS, "--rounds", "1", "--ticks", "4", *given),
        *("--reasoner", "ollama", "--model", "tiny", "--host", ollama.url),
    )
    assert (ran.status, ran.err) == (0, "")
    assert {request["think"] for request in ollama.chats} == {told}


def test_a_patient_run_waits_for_its_server(command: Any) -> None:
    """With ``--patience`` a run waits for a server that drops its questions for a while, instead of falling back."""
    with FakeOllama() as server:
        server.fail(*[Fault.drop()] * 5, path="/api/chat")
        ran = command(
            *("simulate", "--agents", "20", "--rounds", "2", "--out", "run", "--patience", "60"),
            *(
                "--reasoner",
                "ollama",
                "--model",
                "llama3.2",
                "--mode",
                "chat",
                "--host",
                server.host,
            ),
        )
    assert (ran.status, ran.err) == (0, "")
    summary = summary_of(command.folder / "run")
    totals = summary["results"]["totals"]
    assert totals["decisions_asked"] > 10
    # who asks three times in vain falls back
    assert totals["decisions_answered"] >= totals["decisions_asked"] - 1
    assert summary["config"]["patience"] == 60


@pytest.mark.parametrize(
    "given", [[], ["--agents", "1", "--ticks", "1", "--rounds", "1"], ["--seed", "-1"]]
)
def test_defaults_and_extremes_run(given: list[str], command: Any) -> None:
    """A run without any option, the smallest one and one with a negative seed end well."""
    ran = command("simulate", *given)
    assert (ran.status, ran.err) == (0, "")
    assert "Agents in each state" in ran.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--agents", "1.5"], "--agents must be a whole number or a file, got 1.5"),
        (["--agents", ""], "--agents must be a number or a file, got nothing"),
        (["--out", ""], "--out must name a folder of its own"),
        (["--max-calls", "3"], "--max-calls needs --reasoner ollama"),
        (
            ["--replay", "nothing", "--model", "m"],
            "--model asks no model: leave it out with --replay",
        ),
        (["--replay", "nothing"], "nothing: cannot be read"),
    ],
)
def test_confusions_are_told_apart(given: list[str], message: str, command: Any) -> None:
    """Numbers, files, empty texts and options that do not go together are each refused in one line."""
    ran = command("simulate", *given)
    assert (ran.status, ran.out, list(command.folder.iterdir())) == (2, "", [])
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_impossible_replay_leaves_no_folder(command: Any) -> None:
    """A replay that does not hold the questions asked ends in one line, and leaves its folder free."""
    command("simulate", "--agents", "20", "--rounds", "1", "--out", "first")
    ran = command(
        "simulate",
        "--agents",
        "20",
        "--rounds",
        "1",
        "--seed",
        "9",
        "--replay",
        "first",
        "--out",
        "again",
    )
    assert (ran.status, ran.out) == (2, "")
    assert "holds no (further) decision of agent" in ran.err
    assert not (command.folder / "again").exists()


def test_replay_writes_the_same_log(command: Any) -> None:
    """A replayed run writes the same events, byte for byte."""
    command("simulate", "--agents", "20", "--rounds", "2", "--out", "first")
    ran = command(
        "simulate", "--agents", "20", "--rounds", "2", "--replay", "first", "--out", "again"
    )
    assert ran.status == 0
    logs = [(command.folder / name / "events.jsonl").read_bytes() for name in ("first", "again")]
    assert logs[0] == logs[1]


def test_full_disk_is_one_line(command: Any) -> None:
    """Output that cannot be written ends the command in one line, without a traceback."""
    with Path("/dev/full").open("w") as full:
        ran = command("simulate", "--agents", "5", "--rounds", "1", stdout=full)
    assert ran.status == 1
    assert ran.err.splitlines() == ["prism: output: No space left on device"]
