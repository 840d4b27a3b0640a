"""Policy files: read, written, refused, and decided by."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run, replay
from prism.errors import InputError
from prism.randomness import RandomStream
from prism.reasoner import PolicyReasoner, Question
from prism.runs import PolicyOptions
from prism.science import Policy
from prism.social import Feed
from prism.statechart import AgentState

OPTIONS = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.SCROLLING)
SHARES = {"composing": 0.1, "engaging_like": 0.2, "scrolling": 0.7}
POLICY = Policy({"evaluating": {"decides": SHARES}})


def question_in(state: Any = AgentState.EVALUATING, options: tuple[Any, ...] = OPTIONS) -> Question:
    """Return a question of an agent."""
    archetype = SimpleNamespace(name="lurker", inclinations={})
    agent = SimpleNamespace(
        agent_id="a", archetype=archetype, random=RandomStream(1, "a"), relevance=lambda _post: 0.5
    )
    return Question(agent, state, "decides", options, {"post_id": "p"})


async def answered(question: Question) -> Any:
    return (await POLICY.reasoner().answer([question]))[0]


async def test_the_options_that_are_open_share_the_probability() -> None:
    """All have what the file says, and some of them the same in proportion."""
    all_open, two = await answered(question_in()), await answered(question_in(options=OPTIONS[:2]))
    assert list(all_open.probabilities.values()) == pytest.approx([0.1, 0.2, 0.7])
    assert list(two.probabilities.values()) == pytest.approx([1 / 3, 2 / 3], abs=1e-6)
    assert {all_open.source, two.source} == {"policy"}


async def test_a_question_without_an_answer_falls_back() -> None:
    """Where the policy has no estimate the built-in one decides, and the decision says so."""
    question = question_in(AgentState.RESTING)
    decision = await answered(question)
    assert (decision.source, decision.reason) == ("fallback", "not in the policy")
    assert list(decision.probabilities.values()) == pytest.approx(
        PolicyReasoner().probabilities(question), abs=1e-6
    )


def test_a_run_by_a_policy_file_is_kept_and_repeated(tmp_path: Path) -> None:
    """It says in run.json who decided, repeats its bytes."""
    path = tmp_path / "policy.json"
    POLICY.to_file(path)
    assert Policy.from_file(path) == POLICY
    run = Run(Feed, 30, rounds=2, reasoner=PolicyOptions(path))
    outcomes = [run.keep(tmp_path / name) for name in ("one", "two")]
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("one", "two")]
    assert logs[0] == logs[1]
    replay(tmp_path / "one", tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == logs[0]
    config = outcomes[0].summary["config"]
    assert (config["reasoner"], config["policy"]) == ("calibrated", str(path))
    assert Run.from_config(config, path).to_config() == run.to_config()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", r"policy\.json: .* valid dictionary"),
        ('{"a": 1}', "'a': .* valid dictionary"),
        ('{"a": {"b": {"c": "x"}}}', "'a.b.c': .* valid number"),
        ('{"a": {"b": {"c": 2}}}', "'a.b.c': .* less than or equal to 1"),
    ],
)
def test_what_is_no_policy_is_refused_before_a_run(text: str, problem: str, tmp_path: Path) -> None:
    """The key is named, and what it must hold."""
    path = tmp_path / "policy.json"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        _ = Run(Feed, 4, reasoner=PolicyOptions(path)).agents
