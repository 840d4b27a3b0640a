"""``prism run`` and ``simulate`` as a user runs them: worlds, the feed, and single agents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.llm import Model
from prism.runs import RunFolder
from prism.testing import FakeOllama, Fault
from tests.kit.cognition import add, limited, thought
from tests.kit.commands import Argument, Prism

pytestmark = pytest.mark.usefixtures("own_modules")

MINE = """
from enum import StrEnum
from prism import Agent, Statechart, Transition, World, during, measure, treatment
from prism.worlds import param

Mood = StrEnum("Mood", ["CALM", "KEEN"])
moves = [Transition("stirs", Mood.CALM, mood) for mood in Mood]


class Person(Agent):
    chart = Statechart(Mood, moves, Mood.CALM, name="mood", decision_states=[Mood.CALM])
    trust: float = 0.5


class Mine(World[Person]):
    rounds = 4
    ticks = 2
    beta: float = param(0.3, "how fast", least=0, most=1)
    cap: int | None = None

    @during(Mood.CALM)
    async def step(self, person):
        await person.decide("stirs", weights={Mood.KEEN: self.beta * person.trust, Mood.CALM: 1})

    @treatment
    def hurry(self):
        self.beta = 1.0

    @measure
    def keen(self):
        return self.share(Mood.KEEN)
"""
AGENT = """\
state_machine:
  states: [looking, working]
  transitions: [looking->working, working->working, working->looking]
steps:
  - {name: count, code: "seen = context.get('seen', 0) + 1"}
  - {name: look, type: llm, in_state: looking, prompt: "Look {seen}", output: text,
     transition_to: working}
  - {name: rest, type: transition, in_state: working, transition_to: looking}
"""
TABLE = "agent_id,trust,age\nann,0.9,31\nbo,0.1,44\n"
RUN: tuple[Argument, ...] = ("run", "own_mine.py:Mine")


@pytest.fixture
def mine(prism: Prism) -> Prism:
    """Return the command line in a folder with a world, an agent in YAML, and a table."""
    (prism.folder / "own_mine.py").write_text(MINE)
    (prism.folder / "agent.yaml").write_text(AGENT)
    (prism.folder / "people.csv").write_text(TABLE)
    return prism


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))


def log_of(folder: Path) -> bytes:
    return (folder / "events.jsonl").read_bytes()


def asking(server: FakeOllama) -> tuple[str, str]:
    return "--model", f"ollama:tiny@{server.url}"


# worlds


def test_tables_show_the_results(prism: Prism) -> None:
    """States by round, and every count stand in the tables; the summary is printed as it is."""
    ran = prism("simulate", "--agents", 60, "--rounds", 5, "--out", "run")
    assert (ran.status, ran.err) == (0, "")
    results = summary_of(prism.folder / "run")["results"]
    lines = [line.split() for line in ran.out.splitlines()]
    for state in results["rounds"][0]["states"]:
        assert [state, *(str(one["states"][state]) for one in results["rounds"])] in lines
    for what in ("posts", "replies", "likes", "transitions"):
        assert [what, f"{results['totals'][what]:,}"] in lines
    assert max(map(len, ran.out.splitlines())) <= 80

    as_json = prism("simulate", "--agents", 60, "--rounds", 5, "--json", "--out", "again")
    assert as_json.out == (prism.folder / "again" / "run.json").read_text(encoding="utf-8")
    assert log_of(prism.folder / "again") == log_of(prism.folder / "run")


def test_every_option_is_part_of_the_run(mine: Prism, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command line says is what is run, and where it is kept."""
    begun: list[Any] = []

    def carry_out(run: Run[Any], folder: RunFolder, **_keeping: Any) -> None:
        begun.extend((run.to_config(), folder.path))
        raise InputError("enough")

    monkeypatch.setattr("prism.runs.running.carry_out", carry_out)
    (mine.folder / "model.toml").write_text('temperature = 0.5\nprompt = "{name}"')
    ran = mine(
        *(*RUN, "--agents", "people.csv", "--rounds", 3, "--ticks", 1, "--seed", 4),
        *("--set", "beta=0.9", "--set", "cap=3", "--treat", "hurry@2"),
        *("--treat", "beta=0.1@3", "--log-agents", 1, "--model", "ollama:tiny@gpu1,gpu2"),
        *("--model-file", "model.toml", "--max-calls", 9, "--writer", "other", "--out", "run"),
    )
    assert ran.err == "prism: enough\n"
    model = Model.of("ollama:tiny@gpu1,gpu2", max_calls=9, temperature=0.5, prompt="{name}")
    config, folder = begun
    assert folder == Path("run")
    assert config["parameters"] == {"beta": 0.9, "cap": 3}
    wanted = {"agents": "people.csv", "rounds": 3, "ticks_per_round": 1, "seed": 4}
    assert config | wanted | model.to_config() == config
    assert [len(config["treatments"]), config["log_agents"]] == [2, 1]
    assert config["writer"]["model"]["model"] == "other"


def test_a_model_decides_and_a_replay_asks_none(mine: Prism, server: FakeOllama) -> None:
    """Its choices are in the log; a replay writes the same log without a server."""
    ran = mine(*RUN, "--agents", 5, *asking(server), "--max-calls", 3, "--out", "run")
    assert (ran.status, "spent: 3 calls" in ran.out) == (0, True)
    server.stop()
    assert mine("replay", "run", "--out", "again").status == 0
    assert log_of(mine.folder / "again") == log_of(mine.folder / "run")


def test_a_model_writes(prism: Prism) -> None:
    """With ``--writer`` the posts of the feed are the model's, while the policy decides."""
    with FakeOllama(models=["tiny"], write=lambda *_: {"text": "Words."}) as server:
        writer = ("--writer", f"ollama:tiny@{server.url}")
        ran = prism("simulate", "--agents", 30, "--rounds", 2, *writer, "--out", "run")
    assert ran.status == 0, ran.err
    texts = summary_of(prism.folder / "run")["results"]["totals"]["texts"]
    assert texts.keys() == {"model"}
    assert log_of(prism.folder / "run").count(b'"text":"Words."') > 0


def test_a_model_that_decides_and_writes_has_its_prices_for_both(prism: Prism) -> None:
    """The prices of ``--model-file`` count for each token of the one model."""
    (prism.folder / "prices.toml").write_text("price_in = 1000\nprice_out = 2000\n")
    with FakeOllama(models=["tiny"], write=lambda *_: "Words.") as server:
        model, name = asking(server)
        both = (model, name, "--writer", name, "--model-file", "prices.toml")
        ran = prism("simulate", "--agents", 30, "--rounds", 2, *both, "--json")
    assert ran.status == 0, ran.err
    summary = json.loads(ran.out)
    assert summary["results"]["totals"]["texts"]["model"] > 0
    of_model = summary["spent"]["by_model"]["tiny"]
    tokens = of_model["input_tokens"] + 2 * of_model["output_tokens"]
    assert summary["spent"]["money"] == pytest.approx(tokens / 1000)


def test_a_run_whose_decisions_all_fell_back_has_failed(mine: Prism, server: FakeOllama) -> None:
    """Its status is 1, and the output says why, with the reason and the server."""
    server.fail_always(Fault.status(400, "no"))
    ran = mine(*RUN, "--agents", 5, "--rounds", 1, *asking(server), "--out", "run")
    assert ran.status == 1
    assert "Only 0 of 10 decisions are the model's" in ran.out
    assert f"at {server.host}" in " ".join(ran.out.split())


def test_a_run_without_its_server_does_not_begin(mine: Prism, server: FakeOllama) -> None:
    """Where nothing listens a run is an error at once: one line, status 1, and no folder."""
    server.stop()
    ran = mine(*RUN, *asking(server), "--out", "run")
    assert (ran.status, ran.out) == (1, "")
    assert f"cannot reach tiny at {server.host}" in ran.err.splitlines()[-1]
    assert not (mine.folder / "run").exists()


def test_a_dry_run_estimates_and_asks_nobody(mine: Prism) -> None:
    """Decisions, tokens and money are estimated, as text and as data."""
    (mine.folder / "model.toml").write_text("price_in = 1\nprice_out = 2.0\n")
    line = (*RUN, "--model", "tiny", "--model-file", "model.toml", "--dry-run", "--out", "run")
    ran = mine(*line)
    assert (ran.status, ran.out.startswith("Nothing was sent: estimated from 3 of 4")) == (0, True)
    assert json.loads(mine(*line, "--json").out)["models"]["tiny"]["money"] > 0
    assert not (mine.folder / "run").exists()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("--set", "beta=2"), "--set: Mine.beta: Input should be less than or equal to 1, got '2'"),
        (("--set", "btea=1"), "Mine has no parameter 'btea'; did you mean 'beta'?"),
        (("--set", "beta"), "--set must be NAME=VALUE, got 'beta'"),
        (("--set", "cap=1", "--set", "cap=2"), "--set has 'cap' twice: '1' and '2'"),
        (("--treat", "hury@2"), "Mine has no treatment 'hury'; did you mean 'hurry'?"),
        (("--treat", "hurry"), "--treat must have its round, from 1 on: write hurry@12"),
        (("--memory", "x"), "--memory is no argument of a run of own_mine.py:Mine: leave it out"),
        (("--model-file", "none.toml"), "none.toml: there is no such file"),
        (("--model-file", "model.toml"), "model.toml, field 'timeout': Input should be greater"),
        (("--max-calls", 3), "--max-calls needs --model"),
        (("--model", ""), "--model must name a model, as in ollama:llama3.2"),
        (("--writer", ""), "--writer must name a model, as in ollama:llama3.2"),
        (("--model", "m", "--writer", "openai:a"), "--writer must name an OpenAI-compatible"),
        (("--policy", "none.json"), "none.json: there is no such file"),
        (("--model", "openai:a"), "--model must name an OpenAI-compatible server"),
        (("--policy", "p.json", "--model", "m"), "--policy already decides: leave out --model"),
        (("--bogus",), "--bogus"),
        (("--agents", "-3"), "--agents must be a whole number"),
        (("--agents", "2.5"), "--agents must be a whole number"),
        (("--agents", "1,000"), "--agents must be a whole number or a file"),
        (("--out", "model.toml"), "model.toml: cannot be written to"),
        (("--out", "/proc/nope/run"), "cannot be written to"),
    ],
)
@pytest.mark.sampled(6)
def test_mistakes_are_one_line(given: tuple[str, ...], problem: str, mine: Prism) -> None:
    """Each mistake is one line with status 2, and nothing is written."""
    (mine.folder / "model.toml").write_text('model = "m"\ntimeout = -1\n')
    ran = mine(*RUN, "--out", "run", *given)
    assert (ran.status, ran.out) == (2, "")
    assert problem in ran.err
    assert ran.err.count("\n") <= 2
    assert not (mine.folder / "run").exists()


def test_full_disk_is_one_line(prism: Prism) -> None:
    """Output that cannot be written ends the command in one line, without a traceback."""
    with Path("/dev/full").open("w") as full:
        ran = prism.run("simulate", "--agents", "5", "--rounds", "1", stdout=full)
    assert (ran.status, ran.err) == (1, "prism: output: No space left on device\n")


# single agents


@pytest.fixture
def writing() -> Iterator[FakeOllama]:
    """Return a server whose model writes."""

    def write(prompt: str, *_about: Any) -> str:
        if "You are in the state thinking" in prompt:
            return thought("so far", "executing")
        return add("entry", "words") if "executing" in prompt else "hello"

    with FakeOllama(models=["tiny"], write=write) as running:
        yield running


def test_an_agent_in_yaml_runs(mine: Prism, writing: FakeOllama) -> None:
    """Results and variables are printed; a replay asks nobody and writes the same log."""
    line = ("run", "agent.yaml", "--rounds", 5, *asking(writing), "--set", "x=4")
    ran = mine(*line, "--set", "n=3", "--set", "who=me", "--out", "run")
    unused = "prism: agent.yaml: unused variables: who\n"
    assert (ran.status, ran.err) == (0, unused)
    shown = [line.split() for line in ran.out.splitlines()]
    for row in (["turns", "5"], ["final.context.n", "3"], ["final.context.x", "4"]):
        assert row in shown
    assert summary_of(mine.folder / "run")["config"]["parameters"] == {"n": 3, "x": 4, "who": "me"}

    writing.stop()
    assert mine("replay", "run", "--out", "again").status == 0
    assert log_of(mine.folder / "again") == log_of(mine.folder / "run")


def test_a_workflow_that_stops_ends_with_status_1(mine: Prism, writing: FakeOllama) -> None:
    """Where a step fails for good the command says which."""
    writing.fail_always(Fault.status(400, "no"))
    ran = mine("run", "agent.yaml", "--rounds", 5, *asking(writing))
    assert ran.status == 1
    assert "prism: the agent stopped early: step 'look': " in ran.err


def test_a_thinking_agent_runs(prism: Prism, writing: FakeOllama) -> None:
    """Its cycles are counted, and its memory is kept."""
    (prism.folder / "config.json").write_text(limited(430, 600).to_json())
    line = ("run", "config.json", "--rounds", 4, *asking(writing))
    ran = prism(*line, "--memory", "memory.json", "--out", "run")
    assert ran.status == 0, ran.err
    assert ["final.cycle", "4"] in [line.split() for line in ran.out.splitlines()]
    assert (prism.folder / "memory.json").exists()
    assert "--memory is needed to run a thinking agent" in prism(*line).err


def test_an_agent_without_one_useful_reply_has_failed(prism: Prism) -> None:
    """The output names the command that checks the model."""
    (prism.folder / "config.json").write_text("{}")
    with FakeOllama(models=["tiny"], write=lambda *_: "") as server:
        line = ("run", "config.json", "--memory", "m.json", "--rounds", 2, *asking(server))
        ran = prism(*line)
    assert ran.status == 1
    assert "prism doctor --model" in ran.err


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("agent.yaml",), "agent.yaml: asks a model in look, rest: name the model"),
        (("agent.yaml", "--agents", 3), "--agents is no argument of a run of agent.yaml"),
        (("config.json", "--memory", "m", "--set", "n=1", "--model", "m"), "--set is no argument"),
        (("bad.yaml", "--model", "m"), "should be 'llm', 'code'"),
        (("goal.json", "--memory", "goal.json", "--model", "m"), "goal.json: is no memory"),
    ],
)
@pytest.mark.sampled(3)
def test_mistakes_with_single_agents_are_one_line(
    given: tuple[Argument, ...], problem: str, mine: Prism
) -> None:
    """What cannot be run is refused in one line, with status 2."""
    (mine.folder / "bad.yaml").write_text("steps: [{name: x, type: magic}]\n")
    (mine.folder / "config.json").write_text("{}")
    (mine.folder / "goal.json").write_text('{"goal": "a story"}')
    ran = mine("run", *given)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert problem in ran.err
