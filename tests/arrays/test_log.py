"""The log of a world of arrays is a log as every other, of a sample of its agents."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.kit.crowds import Epidemic, Fever
from tests.kit.event_schema import faults_of


def logged(path: Path, sample: int, seed: int = 1) -> list[dict[str, Any]]:
    Epidemic(200, seed=seed).run(log=path, sample=sample)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_log_covers_a_sample_and_counts_all(tmp_path: Path) -> None:
    """Events follow the schema; those of the sample are those that a full log has of it."""
    every, some = logged(tmp_path / "every.jsonl", 1000), logged(tmp_path / "some.jsonl", 20)
    assert faults_of(every) == faults_of(some) == []
    joined = {each["agent_id"] for each in some if each["event"] == "agent.joined"}
    assert len(joined) == 20 == some[0]["logged_agents"]
    assert some[0]["parameters"] == {
        **{"contacts": 6, "rewired": 0.1, "begun": 0.05},
        **{"infectious": 0.1, "recovery": 0.2, "rounds": 40},
    }
    assert some[1:] == [each for each in every[1:] if each.get("agent_id", "") in {*joined, ""}]


def test_transitions_of_a_full_log_lead_to_its_counts(tmp_path: Path) -> None:
    """From the states in which agents joined, its transitions make each round's counts."""
    events = logged(tmp_path / "log.jsonl", 200)
    states: dict[str, str] = {}
    moves = 0
    for event in events:
        if event["event"] == "agent.joined":
            states[event["agent_id"]] = event["state"]
        if event["event"] == "statechart.transition":
            assert states[event["agent_id"]] == event["from_state"]
            states[event["agent_id"]] = event["to_state"]
            moves += 1
        if event["event"] == "round.ended":
            assert {name: n for name, n in event["states"].items() if n} == Counter(states.values())
            assert event["transitions"] == moves
            moves = 0
    assert events[-1]["event"] == "run.ended"


def test_a_seed_makes_the_same_log_and_another_seed_another(tmp_path: Path) -> None:
    """Equal runs write equal bytes; a log is never overwritten."""
    paths = [tmp_path / f"{n}.jsonl" for n in range(3)]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        logged(path, 50, seed)
    assert paths[0].read_bytes() == paths[1].read_bytes() != paths[2].read_bytes()
    with pytest.raises(FileExistsError):
        logged(paths[0], 50)


def test_dwell_times_of_several_kinds_are_those_of_their_charts(tmp_path: Path) -> None:
    """People of one chart time out after its limits; each event has its agent's chart."""
    path = tmp_path / "log.jsonl"
    Fever((300, 200), seed=1).run(log=path)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert faults_of(events) == []
    moves = [each for each in events if each["event"] == "statechart.transition"]
    by_chart = Counter(
        (each["chart"], int(each["agent_id"].split("_")[1]) <= 300) for each in moves
    )
    assert {*by_chart} == {("person", True), ("insect", False)}
    dwells = {
        (each["from_state"], each["ticks_in_state"])
        for each in moves
        if each["trigger"] == "timeout"
    }
    assert dwells == {("feverish", 5), ("immune", 8)}
