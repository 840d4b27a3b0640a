"""Policy files: read, written, refused, and decided by."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run, replay
from prism.errors import InputError
from prism.runs import PolicyOptions
from prism.runs._makers import make_reasoner
from prism.science import Policy
from prism.social import Feed
from prism.statechart import AgentState, PolicyReasoner, Question, RandomStream

DOCS = Path(__file__).parents[2] / "docs"

OPTIONS = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.SCROLLING)
POINT = {
    "state": "evaluating",
    "event": "decides",
    "options": ["composing", "engaging_like", "scrolling"],
}
CELLS = [
    {**POINT, "group": "lurker", "counts": [1, 2, 7], "probabilities": [0.1, 0.2, 0.7]},
    {**POINT, "group": "superuser", "counts": [1, 0, 1], "probabilities": None},
    {**POINT, "group": None, "counts": [2, 2, 8], "probabilities": [0.2, 0.2, 0.6]},
]
DOCUMENT: dict[str, Any] = {
    "format": "prism.policy",
    "version": 1,
    "by": "archetype",
    "least": 10,
    "cells": CELLS,
}


def asked(
    group: str | None, relevance: float = 0.5, state: Any = AgentState.EVALUATING
) -> Question:
    """Return a question of an agent of some archetype, to whom a post is so relevant."""
    agent = SimpleNamespace(
        agent_id="a",
        archetype=None if group is None else SimpleNamespace(name=group, inclinations={}),
        random=RandomStream(1, "a"),
        relevance=lambda post: relevance,
    )
    return Question(agent, state, "decides", OPTIONS, {"post_id": "p"})


async def answered(question: Question) -> Any:
    return (await Policy.from_dict(DOCUMENT).reasoner().answer([question]))[0]


async def test_groups_answer_for_themselves_or_all_together() -> None:
    """A group has its own shares, one that is not identified those of all."""
    own, pooled = await answered(asked("lurker")), await answered(asked("superuser"))
    assert list(own.probabilities.values()) == [0.1, 0.2, 0.7]
    assert (own.source, own.reason) == ("policy", None)
    assert list(pooled.probabilities.values()) == [0.2, 0.2, 0.6]
    assert (pooled.source, pooled.reason) == ("policy", "pooled over all groups")


async def test_a_question_without_an_answer_falls_back() -> None:
    """Where the policy has no estimate the built-in one decides, and the decision says so."""
    question = asked("lurker", state=AgentState.RESTING)
    decision = await answered(question)
    assert (decision.source, decision.reason) == ("fallback", "not identified")
    assert list(decision.probabilities.values()) == pytest.approx(
        PolicyReasoner().probabilities(question), abs=1e-6
    )


async def test_one_number_is_drawn_as_by_the_built_in_policy() -> None:
    """After a decision an agent's stream stands where the built-in policy leaves it."""
    ours, theirs = asked("lurker"), asked("lurker")
    await answered(ours)
    await PolicyReasoner().answer([theirs])
    assert ours.agent.random.random() == theirs.agent.random.random()


def test_a_policy_is_written_and_read_again(tmp_path: Path) -> None:
    """A policy from a file is equal to the one that was written."""
    policy = Policy.from_dict(DOCUMENT)
    policy.to_file(tmp_path / "policy.json")
    assert Policy.from_file(tmp_path / "policy.json") == policy


Change = Callable[[dict[str, Any]], object]

WRONG: dict[str, tuple[Change, str]] = {
    "format": (lambda d: d.update(format="other"), "not a policy file"),
    "version": (lambda d: d.update(version=2), "another version of prism"),
    "least": (lambda d: d.update(least=-1), "at least 0"),
    "cells": (lambda d: d.pop("cells"), "is missing"),
    "notes": (lambda d: d.update(notes=1), "is unknown"),
    "cells[0].probabilities[1]": (
        lambda d: d["cells"][0]["probabilities"].__setitem__(1, 1.2),
        "at most 1",
    ),
    "cells[0].counts[0]": (lambda d: d["cells"][0]["counts"].__setitem__(0, "1"), "a whole number"),
}

CONTRADICTIONS: dict[str, tuple[Change, str]] = {
    "cells[0].probabilities": (
        lambda d: d["cells"][0].update(probabilities=[0.1, 0.2, 0.3]),
        "add up to 1",
    ),
    "cells[1].counts": (lambda d: d["cells"][1].update(counts=[1]), "must have 3 items"),
    "cells[3]": (lambda d: d["cells"].append(deepcopy(d["cells"][0])), "as cells.0."),
}


@pytest.mark.parametrize("field", [*WRONG, *CONTRADICTIONS])
def test_what_is_wrong_is_said_with_its_key(field: str) -> None:
    """A document that is no policy is refused, with the key and what is wrong with it."""
    change, problem = {**WRONG, **CONTRADICTIONS}[field]
    document = deepcopy(DOCUMENT)
    change(document)
    with pytest.raises(InputError, match=problem) as error:
        Policy.from_dict(document)

    assert (error.value.field or "cells") == field


def test_what_is_wrong_in_a_file_is_said_with_its_line(tmp_path: Path) -> None:
    """The line is that of the key."""
    document = deepcopy(DOCUMENT)
    document["cells"][1]["counts"] = [1]
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(document, indent=1))
    places = [n for n, line in enumerate(path.read_text().splitlines(), 1) if '"counts"' in line]
    with pytest.raises(InputError, match="must have 3 items") as error:
        Policy.from_file(path)

    assert (error.value.line, error.value.field) == (places[1], "cells[1].counts")


def test_a_run_by_a_policy_file_is_kept_and_repeated(tmp_path: Path) -> None:
    """It says in run.json who decided, repeats its bytes, and is refused with another file."""
    path = tmp_path / "policy.json"
    Policy.from_dict(DOCUMENT).to_file(path)
    run = Run(Feed, 30, rounds=2, reasoner=PolicyOptions(path))
    outcomes = [run.keep(tmp_path / name) for name in ("one", "two")]
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("one", "two")]
    assert logs[0] == logs[1]
    replay(tmp_path / "one", tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == logs[0]
    config = outcomes[0].summary["config"]
    assert (config["reasoner"], config["policy"]) == ("calibrated", str(path))
    assert Run.from_config(config, path).to_config() == run.to_config()

    path.write_text(path.read_text().replace("0.7", "0.70"))
    with pytest.raises(InputError, match="restore it"):
        Run.from_config(config, path)


def test_a_file_that_is_no_policy_is_refused_before_a_run(tmp_path: Path) -> None:
    """The file and what is wrong with it are named."""
    path = tmp_path / "policy.json"
    path.write_text("[]")
    with pytest.raises(InputError, match=r"policy\.json.*must hold an object"):
        make_reasoner(PolicyOptions(path), 0, None)
