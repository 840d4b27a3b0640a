"""A run of the social feed as options, written down, read again, and carried out."""

import json
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import orjson
import pytest

import prism
from prism import Run, replay
from prism.agents import load_population
from prism.errors import InputError, ReplayError
from prism.llm import Model
from prism.runs import ReplayOptions
from prism.social import Feed
from prism.telemetry.events import DECISION
from prism.testing import FakeOllama, Fault
from tests.kit.social import parameters_of
from tests.kit.worlds import run_in

DATA = Path(__file__).parents[1] / "data"
PERSONAS = DATA / "oasis" / "user_data_36.json"
SUMMARY = Path("run") / "run.json"
MODEL = Model(
    model="tiny",
    hosts=("http://a", "http://b"),
    mode="chat",
    pick="argmax",
    think="low",
    concurrency=3,
    timeout=2.5,
    patience=30.0,
    max_calls=100,
    max_tokens=10**6,
    deadline=60.0,
    cache=Path("answers.db"),
)


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run."""
    return [orjson.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    """Return one file of each kind that a run may read."""
    names = {"agents": "people.jsonl", "posts": "posts.jsonl", "replay": "recorded"}
    paths = {kind: tmp_path / name for kind, name in names.items()}
    paths["agents"].write_text('{"agent_id": "ann", "interests": ["art"]}\n')
    paths["posts"].write_text('{"author_id": "ann", "text": "Look."}\n')
    paths["replay"].mkdir()
    (paths["replay"] / "events.jsonl").write_text('{"event": "run.started"}\n')
    return paths


def run_of(inputs: dict[str, Path]) -> Run[Any]:
    """Describe a run that reads all three files."""
    replay = ReplayOptions(inputs["replay"])
    return Run(
        Feed,
        inputs["agents"],
        rounds=4,
        ticks=6,
        seed=-7,
        reasoner=replay,
        parameters={"first_posts": inputs["posts"]},
    )


def as_json(run: Run[Any]) -> dict[str, Any]:
    """Return what is read from options that were written."""
    return dict(json.loads(json.dumps(run.to_config())))


# As plain data


def test_options_are_read_as_they_were_written(inputs: dict[str, Path]) -> None:
    """Options come back equal from their configuration, and so does the configuration from them."""
    described = [
        run_of(inputs),
        Run(Feed, "100"),
        Run(Feed, inputs["agents"], rounds=1, ticks=1, seed=2**53, reasoner=MODEL),
        Run(Feed, inputs["agents"], keep=("age", "trust")),
    ]
    for run in described:
        config = as_json(run)
        assert Run.from_config(config, SUMMARY).to_config() == run.to_config()
        assert run.to_config() == config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": inf}, "field 'timeout': must be a finite number, got inf"),
        (
            {"hosts": ("a", "b\udcff")},
            "field 'hosts': must be an address such as http://127.0.0.1:11434, got 'b",
        ),
        ({"mode": "loud"}, "field 'mode': must be 'auto', 'decision' or 'chat', got 'loud'"),
        ({"pick": "best"}, "field 'pick': must be 'draw' or 'argmax', got 'best'"),
        ({"think": "hard"}, "field 'think': must be one of false, true, low, medium, high"),
    ],
)
def test_model_options_that_cannot_be_written_down_are_refused(
    options: dict[str, Any], message: str
) -> None:
    """What run.json could not hold, and choices that there are not, are refused at once."""
    with pytest.raises(InputError) as refused:
        Model("tiny", **options)
    assert str(refused.value).startswith(message)


def test_names_of_files_need_not_be_utf_8(inputs: dict[str, Path]) -> None:
    """A run whose files have names that are not UTF-8 is read back from run.json."""
    named = {
        kind: path.rename(path.with_name(f"\udcff{path.name}")) for kind, path in inputs.items()
    }
    run = run_of(named)
    assert Run.from_config(as_json(run), Path("run.json")).to_config() == run.to_config()


@pytest.mark.parametrize("kind", ["agents", "posts", "replay"])
def test_a_changed_file_is_refused(kind: str, inputs: dict[str, Path]) -> None:
    """A file that has changed since the run began, or that is gone, is refused by name."""
    config = as_json(run_of(inputs))
    file = inputs[kind] / "events.jsonl" if inputs[kind].is_dir() else inputs[kind]
    with file.open("a") as changed:
        changed.write("\n")
    with pytest.raises(InputError, match="has changed since the run in run began") as refused:
        Run.from_config(config, SUMMARY)
    assert refused.value.path == str(inputs[kind])
    assert "restore it" in str(refused.value)
    file.unlink()
    gone = r"cannot be read \(No such file or directory\): resume a run where"
    with pytest.raises(InputError, match=f"{gone}|holds no events.jsonl"):
        Run.from_config(config, SUMMARY)


OF_MODEL = [name for name in MODEL.to_config() if name != "reasoner"]
OF_RUN = ["agents", "rounds", "ticks_per_round", "seed", "reasoner", "inputs"]


@pytest.mark.parametrize("name", [*OF_MODEL, *OF_RUN, "replay"])
@pytest.mark.parametrize("value", [None, True, 1.5, 7, "text\0", [1], {"a": 1}])
@pytest.mark.sampled(35)
def test_a_value_of_another_kind_is_one_line(name: str, value: Any) -> None:
    """Whatever stands in a key, it is refused in one line that names it, or is what it says."""
    reasoner = {"reasoner": "replay"} if name == "replay" else MODEL.to_config()
    config = {**as_json(Run(Feed, "3", rounds=4, ticks=6, seed=-7)), **reasoner, name: value}
    try:
        made = Run.from_config(config, SUMMARY)
    except InputError as refused:
        message = str(refused)
        assert "\n" not in message
        is_told = f"field {name!r}" in message or str(value) in message
        assert is_told or name == "inputs"
    else:
        assert type(made.to_config()[name]) is type(value)
        assert made.to_config()[name] == value or name == "inputs"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"colour": "red"}, "field 'colour': is unknown"),
        ({"replay": "recorded"}, "field 'replay': is unknown"),
        ({"reasoner": "policy"}, "field 'model': is unknown"),
        ({"reasoner": "oracle"}, "field 'reasoner': cannot be 'oracle'"),
        ({"reasoner": "replay"}, "field 'replay': is missing"),
        ({"mode": "loud"}, "field 'mode': must be 'auto', 'decision' or 'chat', got 'loud'"),
        ({"host": ["http://a", 5]}, "field 'hosts': must be a text or a list of texts"),
        ({"seed": 2**53 + 1}, "field 'seed': must lie between"),
    ],
)
def test_what_prism_does_not_write_is_refused(changes: dict[str, Any], named: str) -> None:
    """Unknown keys, unknown names and numbers that JSON could not hold are refused by name."""
    config = as_json(Run(Feed, "10", rounds=1, ticks=1, seed=0, reasoner=MODEL))
    with pytest.raises(InputError) as refused:
        Run.from_config({**config, **changes}, SUMMARY)
    assert str(SUMMARY) in str(refused.value)
    assert named in str(refused.value)


def test_a_replay_of_a_folder_is_that_of_its_log(inputs: dict[str, Path]) -> None:
    """The digest of a replayed run is that of its log, however the run is named."""
    log = inputs["replay"] / "events.jsonl"
    log.write_text(json.dumps({"event": DECISION}) + "\n")
    digests = {
        digest
        for named in (log, inputs["replay"])
        for name, digest in Run(Feed, "1", reasoner=ReplayOptions(named))
        .to_config()["inputs"]
        .items()
        if name != "prism.social"
    }
    assert len(digests) == 1


def test_a_model_makes_a_run_unrepeatable() -> None:
    """A policy and a replay would write the same log again, a model would not."""
    assert Run(Feed).is_repeatable
    assert Run(Feed, reasoner=ReplayOptions(Path("run"))).is_repeatable
    assert not Run(Feed, reasoner=MODEL).is_repeatable
    assert (Run(Feed).deadline, Run(Feed, reasoner=MODEL).deadline) == (None, 60)


@pytest.mark.parametrize(
    ("agents", "problem"),
    [
        ("1.5", "must be a whole number or a file, got 1.5"),
        ("", "must be a number or a file, got nothing"),
        (0, "must be 1 or more, got 0"),
    ],
)
def test_an_impossible_number_of_agents_is_refused(
    agents: Any, problem: str, tmp_path: Path
) -> None:
    """Half an agent, none, and an empty text are refused by the field, and nothing is written."""
    with pytest.raises(InputError, match=f"field 'agents': {problem}"):
        Run(Feed, agents).keep(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


# Carried out


@pytest.mark.slow
def test_personas_of_oasis_live(tmp_path: Path) -> None:
    """A run on the personas file has its 36 people in the log, and they like each other's posts."""
    outcome = Run(Feed, PERSONAS, rounds=4, parameters={"preset": "classic"}).keep(tmp_path)
    joined = [event for event in events_of(tmp_path) if event["event"] == "agent.joined"]
    people = load_population(PERSONAS).agents
    assert [(event["agent_id"], event["interests"]) for event in joined] == [
        (agent.agent_id, agent.interests) for agent in people
    ]
    assert outcome.results.agents == 36
    assert outcome.results.totals.agent_ticks == 36 * 4 * 12
    assert outcome.results.totals.likes > 0


def test_twitter_population_lives(tmp_path: Path) -> None:
    """A run on a Twitter population begins with its tweets and uses its follow graph."""
    Run(Feed, DATA / "twitter.csv", rounds=2, parameters={"preset": "classic"}).keep(tmp_path)
    population, events = load_population(DATA / "twitter.csv"), events_of(tmp_path)
    begun = [
        event["text"]
        for event in events
        if event["event"] == "post.published" and event["round"] == 0
    ]
    assert sorted(begun) == sorted(post.text for post in population.posts) != []
    joined = {
        event["agent_id"]: event["following"]
        for event in events
        if event["event"] == "agent.joined"
    }
    assert joined == {agent.agent_id: len(agent.following) for agent in population.agents}


def test_posts_file_is_what_the_run_begins_with(tmp_path: Path) -> None:
    """The posts of a file are published before the first round, and no made-up ones."""
    people, posts = tmp_path / "people.jsonl", tmp_path / "posts.jsonl"
    people.write_text(
        "".join(f'{{"agent_id": "{name}", "interests": ["art"]}}\n' for name in ("ann", "ben"))
    )
    posts.write_text(
        '{"author_id": "ann", "text": "Look.", "topics": ["art"], "post_id": "first"}\n'
        '{"author_id": "ben", "text": "Hm."}\n'
    )
    Run(Feed, people, rounds=1, parameters={"preset": "classic", "first_posts": posts}).keep(
        tmp_path / "run"
    )
    published = [
        event for event in events_of(tmp_path / "run") if event["event"] == "post.published"
    ]
    begun = [
        (post["agent_id"], post["text"], post["topics"]) for post in published if post["round"] == 0
    ]
    assert sorted(begun) == [("ann", "Look.", ["art"]), ("ben", "Hm.", [])]
    assert "first" in [post["post_id"] for post in published]


def test_summary_is_complete(tmp_path: Path) -> None:
    """The summary tells version, every option, and results that agree with the log."""
    Run(Feed, 20, rounds=3, ticks=9, seed=7, parameters={"preset": "classic"}).keep(tmp_path)
    summary, events = json.loads((tmp_path / "run.json").read_bytes()), events_of(tmp_path)
    assert summary["prism"] == prism.__version__
    assert summary["schema"] == events[0]["schema"] == 1
    told = dict(summary["config"])
    assert told.pop("parameters") == parameters_of(Feed(preset="classic"))
    assert told.pop("inputs").keys() == {"prism.social"}
    assert told == {
        "world": "prism.social:Feed",
        "agents": 20,
        "rounds": 3,
        "ticks_per_round": 9,
        "seed": 7,
        "treatments": [],
        "reasoner": "policy",
    }
    names = Counter(event["event"] for event in events)
    totals = summary["results"]["totals"]
    assert totals["agent_ticks"] == 20 * 3 * 9
    assert totals["transitions"] == names["statechart.transition"]
    assert totals["decisions_asked"] == names["reasoner.decision"]
    assert totals["likes"] == names["post.liked"]
    assert len(summary["results"]["rounds"]) == names["round.ended"] == 3
    assert events[-1].items() >= totals.items()


def test_run_can_be_repeated(tmp_path: Path) -> None:
    """The same options write the same bytes into another folder, and another seed other ones."""
    for folder, seed in (("one", 4), ("same", 4), ("other", 5)):
        Run(Feed, 20, rounds=2, seed=seed).keep(tmp_path / folder)
    one, same, other = (
        [(tmp_path / folder / name).read_bytes() for name in ("events.jsonl", "run.json")]
        for folder in ("one", "same", "other")
    )
    assert one == same
    assert one[0] != other[0]


def test_impossible_replay_leaves_no_folder(tmp_path: Path) -> None:
    """A replay that does not hold the questions asked is refused, and leaves its folder free."""
    Run(Feed, 20, rounds=1).keep(tmp_path / "first")
    other = Run(Feed, 20, rounds=1, seed=9, reasoner=ReplayOptions(tmp_path / "first"))
    with pytest.raises(ReplayError, match=r"holds no \(further\) decision of agent"):
        other.keep(tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_replay_that_runs_out_keeps_its_rounds(tmp_path: Path) -> None:
    """A replay whose log ends early fails, but the rounds that have ended stay."""
    Run(Feed, 25, rounds=3, seed=5).keep(tmp_path / "recorded")
    log = tmp_path / "recorded" / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    ended = [
        number
        for number, line in enumerate(lines, start=1)
        if line.startswith(b'{"event":"round.ended"')
    ]
    log.write_bytes(b"".join(lines[: ended[1]]))
    with pytest.raises(ReplayError, match=r"recorded/events.jsonl holds no \(further\) decision"):
        replay(tmp_path / "recorded", tmp_path / "run")
    rounds = [
        event["round"] for event in events_of(tmp_path / "run") if event["event"] == "round.ended"
    ]
    assert rounds == [1, 2]


@pytest.mark.slow
def test_a_patient_run_waits_for_its_server(tmp_path: Path) -> None:
    """With patience a run waits for a server that drops its questions, instead of falling back."""
    with FakeOllama() as server:
        server.fail(*[Fault.drop()] * 5, path="/api/chat")
        model = Model("llama3.2", hosts=(server.host,), mode="chat", patience=60)
        outcome = Run(Feed, 12, rounds=2, reasoner=model).keep(tmp_path)
    totals = outcome.results.totals
    assert totals.decisions_asked > 10
    # a question falls back after three requests that failed
    assert totals.decisions_answered >= totals.decisions_asked - 1
    assert outcome.summary["config"]["patience"] == 60


@pytest.mark.parametrize("keep", [(), ("age",)])
def test_hours_that_a_file_does_not_have_are_refused(keep: tuple[str, ...]) -> None:
    """The message names the parameter and the field, and no option that nobody gave."""
    run = Run(Feed, PERSONAS, keep=keep, parameters={"hours": "file"})
    with pytest.raises(InputError, match=r"^hours = 'file' needs the field activity_level_freq"):
        run.prepare(None)


@pytest.mark.parametrize("options", [{"log_agents": 5}, {"log": "rounds"}])
@pytest.mark.slow
def test_a_run_of_whose_agents_the_log_tells_in_part_is_resumed(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """What agents have read is known after a resume, also of those whom the log leaves out."""
    run = Run("feed", 80, rounds=4, seed=1, parameters={"feed": "popular"}, **options)
    assert run_in(tmp_path / "stopped", run, [2]) == run_in(tmp_path / "whole", run)


@pytest.mark.slow
def test_a_file_of_many_social_agents_is_logged_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the number from which on the log tells of a sample, a file is no exception."""
    monkeypatch.setattr("prism.worlds._loop.MANY", 35)
    monkeypatch.setattr("prism.worlds._loop.LOGGED_OF_MANY", 9)
    Run("feed", PERSONAS, rounds=1).keep(tmp_path / "run")
    events = events_of(tmp_path / "run")
    assert (events[0]["agents"], events[0]["logged_agents"]) == (36, 9)
    assert sum(each["event"] == "agent.joined" for each in events) == 9

    monkeypatch.setattr("prism.worlds._loop.MANY", 36)
    Run("feed", PERSONAS, rounds=1).keep(tmp_path / "all")
    events = events_of(tmp_path / "all")
    assert "logged_agents" not in events[0]
    assert sum(each["event"] == "agent.joined" for each in events) == 36
