"""``prism simulate`` as a user runs it."""

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run
from prism.errors import InputError
from prism.llm import Model
from prism.runs import RunFolder
from prism.social import Feed
from prism.statechart import AgentState
from prism.testing import FakeOllama
from tests.kit.commands import Prism
from tests.kit.servers import chats_of

DATA = Path(__file__).parents[1] / "data"
PERSONAS = DATA / "oasis" / "user_data_36.json"


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))


def troubles(err: str) -> list[str]:
    """Return the lines on stderr but for the note that a busy machine takes long to connect."""
    return [line for line in err.splitlines() if not line.startswith("prism: waiting for ")]


def test_tables_show_the_results(prism: Prism) -> None:
    """Every state, every count of engagement and the five largest cascades stand in the tables."""
    ran = prism(
        "simulate", "--preset", "classic", "--agents", "60", "--rounds", "5", "--out", "run"
    )
    assert (ran.status, ran.err) == (0, "")
    assert "(60 agents)" in ran.out
    results = summary_of(prism.folder / "run")["results"]
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
    assert rows["decisions by fallback"] == "0"
    assert rows["time-outs from resting"] == f"{totals['timeouts']['resting']:,}"
    assert len(results["cascades"]) == 5
    for one in results["cascades"]:
        wanted = [str(one[name]) for name in ("size", "depth", "breadth", "author_id")]
        assert any(line[:4] == wanted for line in lines)
    assert "run/events.jsonl" in ran.out
    assert "run/run.json" in ran.out


def test_json_is_the_summary(prism: Prism) -> None:
    """``--json`` prints exactly what is written to ``run.json``, and nothing else."""
    ran = prism(
        "simulate",
        "--agents",
        "20",
        "--rounds",
        "2",
        "--seed",
        "7",
        "--json",
        "--out",
        "run",
    )
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (prism.folder / "run" / "run.json").read_text(encoding="utf-8")
    assert list(json.loads(ran.out)) == ["prism", "schema", "config", "results"]


def test_every_option_is_part_of_the_run(prism: Prism, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given on the command line is what is run, and where it is kept."""
    begun: list[Any] = []

    def carry_out(run: Run[Any], folder: RunFolder, **keeping: Any) -> None:
        begun.extend((run.to_config(), folder.path))
        raise InputError("enough")

    monkeypatch.setattr("prism.runs._running.carry_out", carry_out)
    person = {"agent_id": "ann", "interests": ["music"], "age": 3, "trust": 1}
    (prism.folder / "people.jsonl").write_text(json.dumps(person))
    (prism.folder / "posts.jsonl").write_text('{"author_id": "ann", "text": "Look."}')
    monkeypatch.chdir(prism.folder)
    given = (
        *(
            "--agents",
            "people.jsonl",
            "--posts",
            "posts.jsonl",
            "--rounds",
            "2",
            "--ticks",
            "3",
        ),
        *("--seed", "4", "--reasoner", "ollama", "--model", "tiny", "--host", "http://a"),
        *("--host", "http://b", "--mode", "chat", "--pick", "argmax", "--think", "low"),
        *("--concurrency", "3", "--timeout", "2.5", "--patience", "30"),
        *("--max-calls", "100", "--max-tokens", "200", "--deadline", "60"),
        *("--attributes", "age, trust"),
        *("--remember", "3", "--remember-tokens", "90", "--reasons"),
        *("--out", "run"),
    )
    assert prism("simulate", *given).err == "prism: enough\n"
    model = Model(
        model="tiny",
        hosts=("http://a", "http://b"),
        mode="chat",
        pick="argmax",
        think="low",
        concurrency=3,
        timeout=2.5,
        patience=30.0,
        max_calls=100,
        max_tokens=200,
        deadline=60.0,
        attributes=("age", "trust"),
        remember=3,
        remember_tokens=90,
        reasons=True,
    )
    run = Run(
        Feed,
        "people.jsonl",
        rounds=2,
        ticks=3,
        seed=4,
        reasoner=model,
        parameters={"first_posts": Path("posts.jsonl")},
    )
    assert begun == [run.to_config(), Path("run")]


def test_a_model_writes_and_a_replay_has_its_words(prism: Prism) -> None:
    """With ``--writer`` posts are the model's; a replay takes them from the log, unasked."""
    size = ("simulate", "--agents", "30", "--rounds", "3")
    with FakeOllama(models=["tiny"], write=lambda prompt, schema: {"text": "Words."}) as server:
        ran = prism(
            *(*size, "--writer", "ollama", "--model", "tiny", "--host", server.url),
            *("--writer-language", "Latin", "--out", "first"),
        )
        asked = len(chats_of(server))

    assert (ran.status, troubles(ran.err)) == (0, [])
    totals = summary_of(prism.folder / "first")["results"]["totals"]
    assert totals["texts"] == {"model": asked}
    assert "texts, model" in ran.out
    assert prism("replay", "first", "--out", "again").status == 0
    log = (prism.folder / "again" / "events.jsonl").read_bytes()
    assert log == (prism.folder / "first" / "events.jsonl").read_bytes()
    assert 0 < log.count(b'"text":"Words."') <= asked


def test_nothing_is_written_without_a_folder(prism: Prism) -> None:
    """Without ``--out`` the results are shown and nothing is left on the disk."""
    ran = prism("simulate", "--agents", "5", "--rounds", "1")
    assert ran.status == 0
    assert "Every transition is in" not in ran.out
    assert list(prism.folder.iterdir()) == []


def test_model_on_a_server_decides(prism: Prism, server: FakeOllama) -> None:
    """With ``--reasoner ollama`` a server is asked, by model and with a schema of the options."""
    ran = prism(
        *("simulate", "--agents", PERSONAS, "--rounds", "1", "--ticks", "6", "--out", "run"),
        *("--reasoner", "ollama", "--model", "tiny", "--host", server.url),
        *("--rotations", "none"),
    )
    assert ran.status == 0
    assert troubles(ran.err) == []
    totals = summary_of(prism.folder / "run")["results"]["totals"]
    assert totals["decisions_answered"] == totals["decisions_asked"] == len(chats_of(server)) > 0
    decisions = [
        event for event in events_of(prism.folder / "run") if event["event"] == "reasoner.decision"
    ]
    assert {(event["source"], event["chosen"] == event["options"][0]) for event in decisions} == {
        ("model", True)
    }
    offered = []
    for request in chats_of(server):
        assert request["model"] == "tiny"
        assert request["format"]["required"] == ["letter"]
        letter = request["format"]["properties"]["letter"]
        offered.append(list(json.loads(letter["description"]).values()))
        assert letter["enum"] == [*"ABCDEFGH"[: len(offered[-1])]]
    assert sorted(offered) == sorted(event["options"] for event in decisions)
    acts = ["composing", "engaging_like", "engaging_reply", "engaging_reshare", "scrolling"]
    assert acts in offered
    assert totals["posts"] + totals["replies"] + totals["reshares"] > 0


def test_a_run_without_its_server_does_not_begin(prism: Prism) -> None:
    """Where nothing listens a run is an error at once: one line, status 1, and no folder."""
    with FakeOllama(models=["tiny"]) as server:
        host = server.host
    ran = prism(
        *("simulate", "--agents", 8, "--rounds", 1, "--out", "run"),
        *("--reasoner", "ollama", "--model", "tiny", "--host", host),
    )
    assert (ran.status, ran.out) == (1, "")
    assert troubles(ran.err) == [
        f"prism: cannot reach tiny at {host} (All connection attempts failed): check that 'ollama "
        "serve' is running there"
    ]
    assert not (prism.folder / "run").exists()


@pytest.mark.parametrize(
    "given", [[], ["--agents", "1", "--ticks", "1", "--rounds", "1"], ["--seed", "-1"]]
)
@pytest.mark.slow
def test_defaults_and_extremes_run(given: list[str], prism: Prism) -> None:
    """A run without any option, the smallest one and one with a negative seed end well."""
    ran = prism("simulate", *given)
    assert (ran.status, ran.err) == (0, "")
    assert "Agents in each state" in ran.out


def test_full_disk_is_one_line(prism: Prism) -> None:
    """Output that cannot be written ends the command in one line, without a traceback."""
    with Path("/dev/full").open("w") as full:
        ran = prism.run("simulate", "--agents", "5", "--rounds", "1", stdout=full)
    assert ran.status == 1
    assert ran.err.splitlines() == ["prism: output: No space left on device"]


FOREIGN = Path(__file__).parents[1] / "data" / "twitter_foreign.csv"


def test_notes_on_a_population_are_shown_once(prism: Prism) -> None:
    """What is noted about a file of agents is a line each on stderr; the results are elsewhere."""
    ran = prism("simulate", "--agents", FOREIGN, "--rounds", 1, "--json")
    assert ran.status == 0
    (renamed,) = ran.err.splitlines()
    assert renamed.endswith("told apart by their row: ['twin#5', 'twin#9']")


def test_columns_of_a_population_are_in_the_log(prism: Prism) -> None:
    """Columns that no field takes are attributes of the agents."""
    prism("simulate", "--agents", FOREIGN, "--rounds", 1, "--out", "run")
    joined = [each for each in events_of(prism.folder / "run") if each["event"] == "agent.joined"]
    assert [each["attributes"]["is_super_user"] for each in joined] == [True] + [False] * 9


def test_a_world_is_asked_with_memories_attributes_and_reasons(
    prism: Prism, server: FakeOllama
) -> None:
    """What the options ask for is in run.json, in the prompts, and the reasons in the log."""
    ran = prism(
        *("run", "vaccination", "--agents", "6", "--rounds", "3", "--out", "run"),
        *("--reasoner", "ollama", "--model", "tiny", "--host", server.host, "--mode", "chat"),
        *("--remember", "2", "--attributes", "trust", "--reasons", "--rotations", "none"),
    )
    assert ran.status == 0, ran.err
    prompt = server.questions[-1].prompt
    assert "\ntrust: 0." in prompt
    assert prompt.count('- You stayed in "undecided" on "considers"') == 2

    asked = summary_of(prism.folder / "run")["config"]
    assert [asked[name] for name in ("remember", "attributes", "reasons")] == [2, ["trust"], True]
    story = prism("log", "agent", "parent_1", "run").out
    assert 'saying "I prefer undecided."' in " ".join(story.split())

    template = prism.folder / "prompt.txt"
    template.write_text("{name}: {agent.trust}\n{situation}", encoding="utf-8")
    world = ("vaccination", "--agents", "6", "--rounds", "1")
    asking = ("--reasoner", "ollama", "--model", "tiny", "--host", server.host, "--mode", "chat")
    assert prism("run", *world, *asking, "--prompt", template).status == 0
    assert re.match(r"parent_\d: 0\.\d+\nYour doctor", server.questions[-1].prompt)
    template.write_text("{nme}", encoding="utf-8")
    ran = prism("run", *world, *asking, "--prompt", template)
    assert ran.err.startswith("prism: prompt names {nme}, which is not a field: there are name,")

    alone = prism(
        *("simulate", "--reasoner", "ollama", "--model", "tiny", "--remember-tokens", "9")
    )
    assert alone.err.startswith("prism: --remember-tokens limits what is remembered")
