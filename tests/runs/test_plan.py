"""What a run is, written down and read again."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.runs._plan import RunPlan
from prism.runs._reasoners import ModelOptions, ModeName, PickName, ReasonerKind, ThinkName
from prism.telemetry.events import DECISION

SUMMARY = Path("run") / "run.json"
MODEL = ModelOptions(
    model="tiny",
    host=("http://a", "http://b"),
    mode=ModeName.CHAT,
    pick=PickName.ARGMAX,
    think=ThinkName.LOW,
    concurrency=3,
    timeout=2.5,
    patience=30.0,
    max_calls=100,
    max_tokens=10**6,
    deadline=60.0,
    cache=Path("answers.db"),
)


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


def plan_of(inputs: dict[str, Path]) -> RunPlan:
    """Plan a run that reads all three files."""
    return RunPlan(
        str(inputs["agents"]), inputs["posts"], 4, 6, -7, ReasonerKind.POLICY, inputs["replay"]
    )


def as_json(plan: RunPlan) -> dict[str, Any]:
    """Return what is read from a plan that was written."""
    return dict(json.loads(json.dumps(plan.to_config())))


def test_a_plan_is_read_as_it_was_written(inputs: dict[str, Path]) -> None:
    """A plan comes back equal from its configuration, and so does the configuration from the plan."""
    plans = [
        plan_of(inputs),
        RunPlan("100", None, 10, 12, 0, ReasonerKind.POLICY),
        RunPlan(str(inputs["agents"]), None, 1, 1, 2**53, ReasonerKind.OLLAMA, options=MODEL),
    ]
    for plan in plans:
        config = as_json(plan)
        assert RunPlan.from_config(config, SUMMARY) == plan
        assert plan.to_config() == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": ModelOptions(timeout=inf)}, "--timeout must be a finite number, got inf"),
        ({"options": ModelOptions(patience=inf)}, "--patience must be a finite number, got inf"),
        ({"options": ModelOptions(deadline=inf)}, "--deadline must be a finite number, got inf"),
        (
            {"options": ModelOptions(host=("a", "b\udcff"))},
            "--host must be UTF-8, as run.json is; got 'a b\\udcff'",
        ),
        ({"options": ModelOptions(cache=Path("c\udcff"))}, "--cache must be UTF-8"),
        (
            {"agents": "p\udcff.jsonl"},
            "--agents must be UTF-8, as run.json is; got 'p\\udcff.jsonl'",
        ),
        ({"posts": Path("p\udcff")}, "--posts must be UTF-8"),
        ({"replay": Path("p\udcff")}, "--replay must be UTF-8"),
        ({"seed": 2**53 + 1}, "--seed must lie between"),
    ],
)
def test_what_cannot_be_written_down_is_refused(changes: dict[str, Any], message: str) -> None:
    """What run.json could not hold, so that the run could not be resumed, is refused before anything is read."""
    plain = RunPlan("100", None, 1, 1, 0, ReasonerKind.OLLAMA)
    with pytest.raises(InputError) as refused:
        replace(plain, **changes)
    assert str(refused.value).startswith(message)


def test_only_files_have_digests(inputs: dict[str, Path]) -> None:
    """The files that a run reads are listed with digests, and a number of agents is none."""
    assert set(plan_of(inputs).to_config()["inputs"]) == {str(path) for path in inputs.values()}
    assert RunPlan("100", None, 1, 1, 0, ReasonerKind.POLICY).to_config()["inputs"] == {}


@pytest.mark.parametrize("kind", ["agents", "posts", "replay"])
def test_a_changed_file_is_refused(kind: str, inputs: dict[str, Path]) -> None:
    """A file that is not what it was when the run began is refused by name, and so is one that is gone."""
    config = as_json(plan_of(inputs))
    file = inputs[kind] / "events.jsonl" if inputs[kind].is_dir() else inputs[kind]
    with file.open("a") as changed:
        changed.write("\n")
    with pytest.raises(
        InputError, match="is not what it was when the run in run began: put it back"
    ) as refused:
        RunPlan.from_config(config, SUMMARY)
    assert refused.value.path == str(inputs[kind])
    file.unlink()
    with pytest.raises(
        InputError,
        match=r"cannot be read \(No such file or directory\): a run is resumed where|holds no events.jsonl",
    ):
        RunPlan.from_config(config, SUMMARY)


ALL = {
    **MODEL.given(),
    **dict.fromkeys(("agents", "posts", "rounds", "ticks_per_round", "seed", "reasoner"), ""),
}
NEEDED = [*(name for name in ALL if name not in MODEL.given()), "inputs", "replay"]


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_key_is_named(name: str, inputs: dict[str, Path]) -> None:
    """A configuration without one of its keys is refused by the key."""
    config = as_json(plan_of(inputs))
    del config[name]
    with pytest.raises(InputError) as refused:
        RunPlan.from_config(config, SUMMARY)
    assert str(refused.value) == f"{SUMMARY}, field {name!r}: is missing"


@pytest.mark.parametrize("name", [*ALL, "inputs", "replay"])
@pytest.mark.parametrize("value", [None, True, 1.5, 7, "text\0", [1], {"a": 1}])
def test_a_value_of_another_kind_is_one_line(
    name: str, value: Any, inputs: dict[str, Path]
) -> None:
    """Whatever stands in a key, the plan is refused in one line that names it, or is the plan that it says."""
    options = {} if name == "replay" else MODEL.given()
    kind = "replay" if name == "replay" else "ollama"
    config = {
        **as_json(RunPlan("3", None, 4, 6, -7, ReasonerKind.OLLAMA)),
        **options,
        "reasoner": kind,
        name: value,
    }
    try:
        made = RunPlan.from_config(config, SUMMARY)
    except InputError as refused:
        message = str(refused)
        assert "\n" not in message
        assert f"field {name!r}" in message or str(value) in message
    else:
        assert type(made.to_config()[name]) is type(value)
        assert made.to_config()[name] == value or name == "inputs"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"colour": "red"}, "field 'colour': is unknown"),
        ({"replay": "recorded"}, "field 'replay': is unknown"),
        ({"reasoner": "oracle"}, "field 'config': is not what prism writes: 'oracle'"),
        ({"reasoner": "replay"}, "field 'replay': is missing"),
        ({"mode": "loud"}, "field 'config': is not what prism writes: 'loud'"),
        ({"host": ["http://a", 5]}, "field 'host': cannot be"),
        ({"seed": 2**53 + 1}, "--seed must lie between"),
    ],
)
def test_what_prism_does_not_write_is_refused(changes: dict[str, Any], named: str) -> None:
    """Unknown keys, unknown names and numbers that JSON could not hold are refused by name."""
    config = as_json(RunPlan("10", None, 1, 1, 0, ReasonerKind.OLLAMA, options=MODEL))
    with pytest.raises(InputError) as refused:
        RunPlan.from_config({**config, **changes}, SUMMARY)
    assert named in str(refused.value)


def test_a_replay_of_a_folder_is_that_of_its_log(inputs: dict[str, Path]) -> None:
    """The digest of a replayed run is that of its log, however the run is named."""
    log = inputs["replay"] / "events.jsonl"
    log.write_text(json.dumps({"event": DECISION}) + "\n")
    plans = [
        RunPlan("1", None, 1, 1, 0, ReasonerKind.POLICY, replay)
        for replay in (log, inputs["replay"])
    ]
    assert (
        len({*plans[0].to_config()["inputs"].values(), *plans[1].to_config()["inputs"].values()})
        == 1
    )
