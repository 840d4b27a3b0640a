"""Counterfactuals: a run again, with something else from a round on."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from prism import Run, replay, resume
from prism.errors import InputError
from prism.examples import Lake, Rumour, Vaccination
from prism.llm import Model
from prism.runs import PolicyOptions
from prism.science import rerun
from prism.social import Feed
from prism.testing import FakeOllama
from tests.kit.kept import StoppedError
from tests.kit.worlds import Leaving


def log_of(folder: Path) -> bytes:
    return (folder / "events.jsonl").read_bytes()


def events_of(folder: Path, event: str = "reasoner.decision") -> list[dict[str, Any]]:
    lines = map(json.loads, log_of(folder).splitlines())
    return [line for line in lines if line["event"] == event]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeOllama, Path]]:
    """Yield a model's server, and the folder of a run of the feed that asked it."""
    folder = tmp_path_factory.mktemp("asked") / "run"
    with FakeOllama(models=["small", "large"]) as server:
        model = Model("small", hosts=(server.host,))
        Run(Leaving, 20, rounds=4, ticks=6, seed=2, reasoner=model).keep(folder)
        yield server, folder


@pytest.fixture
def server(tmp_path: Path, recorded: tuple[FakeOllama, Path]) -> FakeOllama:
    """Return the server, with a copy of the run that a test may change."""
    server, folder = recorded
    copytree(folder, tmp_path / "run")
    return server


@pytest.mark.parametrize(
    "options",
    [Run(Feed, 20, rounds=3, ticks=6, seed=2), Run(Rumour, 20, rounds=4), Run(Lake, 4, rounds=3)],
)
@pytest.mark.sampled(3)
def test_without_a_change_a_policys_run_is_the_run(tmp_path: Path, options: Any) -> None:
    """The feed, a world, and one with agents of other classes write the same bytes."""
    options.keep(tmp_path / "run")
    found = rerun(tmp_path / "run", tmp_path / "again", from_round=2)
    assert log_of(tmp_path / "again") == log_of(tmp_path / "run")
    assert not found.differences


@pytest.mark.parametrize("stops", [(1, 2, 3), pytest.param((), marks=pytest.mark.slow)])
@pytest.mark.slow
def test_the_model_is_asked_from_the_round_on_that_is_changed(
    tmp_path: Path, server: FakeOllama, stops: tuple[int, ...]
) -> None:
    """Rounds before are the same bytes, also where the new run is killed after every round."""
    before, due = server.asked, list(stops)

    def stop(summary: Any) -> None:
        if summary.number in due:
            due.remove(summary.number)
            raise StoppedError

    folder = tmp_path / "again"
    keeping: dict[str, Any] = {"on_round": stop}
    change = "leave@3"
    try:
        found = rerun(tmp_path / "run", folder, from_round=3, treatments=[change], **keeping)
        assert found.differences["decision"]["round"] == 3
    except StoppedError:
        while True:
            try:
                resume(folder, **keeping)
                break
            except StoppedError:
                continue

    was, now = log_of(tmp_path / "run"), log_of(folder)
    begins = now.index(b'{"event":"agent.left"')
    assert now[:begins] == was[:begins]

    # the recorded answers until there, new ones from there on, of which none is as before by chance
    recorded = {json.dumps(each) for each in events_of(tmp_path / "run")}
    is_old = [json.dumps(each) in recorded for each in events_of(folder)]
    new = is_old.count(False)
    assert is_old == sorted(is_old, reverse=True)
    assert server.asked - before == new > 0


@pytest.mark.slow
def test_the_policy_may_decide_from_there_on(tmp_path: Path, server: FakeOllama) -> None:
    """Nobody is asked then, and the new run is repeated without the first."""
    before = server.asked
    again, policy = tmp_path / "again", tmp_path / "policy.json"
    policy.write_text('{"evaluating": {"decides": {"scrolling": 1, "engaging_reply": 1}}}')
    rerun(tmp_path / "run", again, from_round=3, reasoner=PolicyOptions(policy))
    sources = [(each["round"] > 2, each["source"]) for each in events_of(again)]
    assert {late for late, source in sources if source == "model"} == {False}
    assert {source for late, source in sources if late} <= {"policy", "fallback"}
    assert server.asked == before
    (tmp_path / "run").rename(tmp_path / "moved")
    replay(again, tmp_path / "third")
    assert log_of(tmp_path / "third") == log_of(again)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["large", {"prompt": "Shorter.\n\n{situation}"}])
def test_another_model_or_prompt_answers_from_a_round_on(
    tmp_path: Path, server: FakeOllama, model: Any
) -> None:
    """Its round and later ones are asked anew, earlier answers are those of the journal."""
    before, again = server.asked, tmp_path / "again"
    other = Model(model, hosts=(server.host,)) if isinstance(model, str) else model
    rerun(tmp_path / "run", again, from_round=3, model=other)
    was, now = events_of(tmp_path / "run"), events_of(again)
    early = [each for each in was if each["round"] < 3]
    assert now[: len(early)] == early
    late = [each for each in now if each["round"] >= 3]
    # equal questions are asked once
    assert 0 < server.asked - before <= len(late)
    asked_now = {each["model"] for each in late if each["source"] == "model"}
    assert asked_now == {"large" if isinstance(model, str) else "small"}


@pytest.mark.slow
def test_parameters_change_from_a_round_on_and_a_population_from_the_first(tmp_path: Path) -> None:
    """Nothing before differs; another population is refused later than the beginning."""
    run = tmp_path / "run"
    Run(Rumour, 40, rounds=8, seed=1).keep(run)
    found = rerun(run, tmp_path / "tired", from_round=4, parameters={"tiring": "1.0"})
    assert found.differences["transition"]["round"] >= 4
    with pytest.raises(InputError, match="can only be changed from round 1 on"):
        rerun(run, tmp_path / "more", from_round=4, agents=50)
    found = rerun(run, tmp_path / "more", from_round=1, agents=50, rounds=9)
    assert found.outcome.results.agents == 50
    assert len(found.outcome.results.rounds) == 9


@pytest.mark.slow
def test_a_run_without_a_model_asks_one_from_a_round_on(tmp_path: Path) -> None:
    """Its policy decides before; settings alone name no model."""
    run = tmp_path / "run"
    Run(Rumour, 40, rounds=6, seed=1).keep(run)
    with FakeOllama(models=["small"]) as server:
        rerun(run, tmp_path / "again", from_round=3, model=f"ollama:small@{server.host}")
        found = [(each["round"] > 2, each["source"]) for each in events_of(tmp_path / "again")]
        assert {*found} - {(True, "cache")} == {(False, "policy"), (True, "model")}
        # once more, from an earlier round on, but not from a later one
        again, model = tmp_path / "again", f"ollama:small@{server.host}"
        rerun(again, tmp_path / "earlier", from_round=2, model=model)
        found = [(each["round"] > 1, each["source"]) for each in events_of(tmp_path / "earlier")]
        assert {*found} - {(True, "cache")} == {(False, "policy"), (True, "model")}
        (tmp_path / "policy.json").write_text('{"spreader": {"meets": {"stifler": 1}}}')
        policy = PolicyOptions(tmp_path / "policy.json")
        with pytest.raises(InputError, match="must be 3 or less"):
            rerun(again, tmp_path / "later", from_round=5, reasoner=policy)
    with pytest.raises(InputError, match="since the run asked none"):
        rerun(run, tmp_path / "b", from_round=3, model={"prompt": "{situation}"})


class Ignorant:
    """Believes nothing, as a client of another library."""

    async def run(self, prompt: str) -> str:
        """Reply."""
        return json.dumps({"next_state": "ignorant"})


def test_a_policy_decides_after_a_client_that_is_gone(tmp_path: Path) -> None:
    """The rounds before are in the journal, so the client is not needed again."""
    Run(Rumour, 20, rounds=5, model=Model(client=Ignorant())).keep(tmp_path / "run")
    (policy := tmp_path / "policy.json").write_text('{"ignorant": {"hears": {"spreader": 1}}}')
    rerun(tmp_path / "run", tmp_path / "b", from_round=3, reasoner=PolicyOptions(policy))
    chosen = [(each["round"] > 2, each["chosen"]) for each in events_of(tmp_path / "b")]
    assert {*chosen} == {(False, "ignorant"), (True, "spreader")}


@pytest.mark.slow
def test_what_a_model_has_answered_does_not_answer_for_another_one(tmp_path: Path) -> None:
    """Who is asked the same again gets the other model's answer, also in a rerun of the rerun."""
    with FakeOllama(models=["small", "large"], choose=lambda _: "ignorant") as server:
        small, large = (f"ollama:{name}@{server.host}" for name in ("small", "large"))
        Run(Rumour(tiring=0.02), 20, rounds=30, model=small).keep(tmp_path / "run")
        rerun(tmp_path / "run", tmp_path / "again", from_round=8, model=large)
        assert not rerun(tmp_path / "again", tmp_path / "same", from_round=12).differences
    for folder in ("again", "same"):
        late = [each for each in events_of(tmp_path / folder) if each["round"] >= 8]
        asked, cached = (
            {each["prompt_hash"] for each in late if each["source"] == source}
            for source in ("model", "cache")
        )
        assert cached
        assert cached <= asked


@pytest.mark.slow
def test_another_writer_writes_from_a_round_on(tmp_path: Path) -> None:
    """Texts before are those of the run; where nobody wrote, a writer begins in round 1 alone."""
    feed, run = Run(Feed, 30, rounds=3, ticks=12, seed=2), tmp_path / "run"
    with FakeOllama(models=["small", "large"], write=lambda *_: "Well.") as server:
        small, large = (f"ollama:{name}@{server.host}" for name in ("small", "large"))
        feed.replace(writer=small).keep(run)
        rerun(run, tmp_path / "again", from_round=2, writer=large)
        texts = events_of(tmp_path / "again", "text.written")
        asked = {(each["round"] < 2, each["model"]) for each in texts if each.get("model")}
        assert asked == {(True, "small"), (False, "large")}
        feed.replace(model=small).keep(tmp_path / "silent")
        with pytest.raises(InputError, match="can only be changed from round 1 on"):
            rerun(tmp_path / "silent", tmp_path / "late", from_round=2, writer=large)
        rerun(tmp_path / "silent", tmp_path / "written", from_round=1, writer=large)
        texts = events_of(tmp_path / "written", "text.written")
        assert {each["model"] for each in texts if each.get("model")} == {"large"}


@pytest.mark.slow
def test_a_run_that_comes_out_differently_is_refused(tmp_path: Path) -> None:
    """Nothing is concluded where the rounds before the change are not those of the run."""
    run = tmp_path / "run"
    Run(Rumour, 20, rounds=4, seed=1).keep(run)
    summary = run / "run.json"
    # a run of another version has the same settings, and other random numbers
    told = json.loads(summary.read_text())
    told["config"]["seed"] = 2
    summary.write_text(json.dumps(told))
    with pytest.raises(InputError, match=r"before round 3 differ from the original, first in"):
        rerun(run, tmp_path / "again", from_round=3)


def test_what_cannot_be_run_again_is_refused(tmp_path: Path) -> None:
    """By folder, round, or line of the file."""
    run = tmp_path / "run"
    Run(Vaccination, 10, rounds=3).keep(run)
    for folder, from_round, treatments, problem in (
        (run, 4, [], "must be a round of the run, 1 to 3, got 4"),
        (run, 2, ["friends=2@1"], "has friends=2@1, but nothing may differ before round 2"),
        (run, 2, ["campaign"], "must have its round, from 1 on: write campaign@12"),
        (tmp_path / "none", 2, [], "holds no run"),
    ):
        with pytest.raises(InputError, match=problem):
            rerun(folder, tmp_path / "a", from_round=from_round, treatments=treatments)

    summary = run / "run.json"
    told = json.loads(summary.read_text())
    summary.write_text(json.dumps({name: told[name] for name in told if name != "results"}))
    with pytest.raises(InputError, match="has not ended: resume it first"):
        rerun(run, tmp_path / "a", from_round=2)
