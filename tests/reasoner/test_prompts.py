"""What a model is told: the contract's prompt, the prompts of other charts, and templates."""

from dataclasses import replace
from enum import StrEnum
from os.path import commonprefix
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from prism.agents import SocialAgent
from prism.errors import ReasonerError
from prism.reasoner import (
    STATE_DESCRIPTIONS,
    Question,
    Reasoner,
    build_reasoner_prompt,
    format_context,
)
from prism.statechart import AgentState, Statechart, Transition
from prism.statechart.states import state_enum
from prism.testing import FakeOllama
from tests.kit.clients import Model
from tests.kit.days import Day, person
from tests.kit.reasoners import prompt_of
from tests.kit.servers import Connect

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]

PROMPT = """You are Ada, a social media user.

Your interests: chess, climate
Your personality: patient and dry

You are currently in the "evaluating" state and received the "decides" event.

Post by bob:
  > Rooks are overrated.

Choose your next state from these options:
- composing: Write a response or original content
- scrolling: Continue browsing without engaging

Respond with JSON only:
{"next_state": "<state_value>"}
"""

POST = SimpleNamespace(post_id="p1", author="bob", text="Rooks are overrated.")
PROFILE: dict[str, Any] = {"agent_id": "a1", "name": "Ada", "interests": ["chess", "climate"]}
PROFILE["personality"] = "patient and dry"
ADA = SimpleNamespace(**PROFILE)


def ask(agent: Any = ADA) -> Question:
    return Question(agent, S.EVALUATING, "decides", tuple(OPTIONS), POST)


# The contract's prompt


async def test_the_prompt_is_that_of_the_contract() -> None:
    """A reasoner builds the contract's template to the letter, unless the agent has a persona."""
    told = build_reasoner_prompt(
        "Ada", ["chess", "climate"], "patient and dry", S.EVALUATING, "decides", OPTIONS, POST
    )
    assert told == await prompt_of(ask()) == PROMPT
    described = SimpleNamespace(**PROFILE, persona=lambda: "You are Ada.")
    assert "social media user" not in await prompt_of(ask(described))


def test_states_are_described_as_in_the_contract() -> None:
    """Every state has a description, and the prompt lists it so; others have their own text."""
    told = build_reasoner_prompt("x", [], "", S.IDLE, "go", list(S), None)
    for state in S:
        assert f"\n- {state.value}: {STATE_DESCRIPTIONS[state]}\n" in told
    mood = state_enum("Mood", ["very_calm", "cross"])
    told = build_reasoner_prompt(
        "x", [], "", mood("cross"), "go", list(mood), None, descriptions={"cross": "Shout"}
    )
    assert "- very_calm: very calm\n- cross: Shout\n" in told


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (None, "There are no further details."),
        ("A storm is coming.", "A storm is coming."),
        (POST, "Post by bob:\n  > Rooks are overrated."),
        (
            {"text": "Hello\nPost by eve:", "author_id": "a\n2", "topics": ["chess", "go"]},
            "Post by a 2:\n  > Hello\n  > Post by eve:\nTopics: chess, go",
        ),
        ({"text": "My lamp is broken", "angry": True}, "text: My lamp is broken\nangry: yes"),
        (SimpleNamespace(id=4), "simple_namespace_id: 4"),
        (7, "value: 7"),
        ({}, ""),
        ({"text": "The bridge is closed\nA: go"}, "text: The bridge is closed\n  A: go"),
        (SimpleNamespace(text="The bridge is closed"), "Text:\n  > The bridge is closed"),
        ({"text": "", "post_id": "p", "topics": ["go"]}, "Post:\n  > (no text)\nTopics: go"),
        ({"text": "", "content": "Hi", "author": "", "topics": "t"}, "Post:\n  > Hi\nTopics: t"),
        (SimpleNamespace(post_id="p1", text=None, content=None), "post_id: p1"),
    ],
)
def test_a_context_is_described_in_words(context: Any, text: str) -> None:
    """A post is quoted with author and topics, a text stands by itself, all else has its fields."""
    assert format_context(context) == text


@pytest.mark.parametrize(
    ("agent", "profile"),
    [
        (SimpleNamespace(agent_id="a7", name=None, interests=None), ("a7", "", "")),
        (SimpleNamespace(unique_id=3, interests=(1, "idle"), personality=7), ("3", "1, idle", "7")),
        (SimpleNamespace(unique_id=3, interests="chess"), ("3", "chess", "")),
    ],
)
async def test_any_profile_can_be_told(agent: Any, profile: tuple[str, str, str]) -> None:
    """An agent without a name goes by its identifier; its profile is shown as text."""
    name, interests, personality = profile
    assert (await prompt_of(ask(agent))).startswith(
        f"You are {name}, a social media user.\n\n"
        f"Your interests: {interests}\nYour personality: {personality}\n"
    )


@pytest.mark.parametrize(
    "mock", [MagicMock(), Mock(), Mock(spec=list(PROFILE)), Mock(spec=SocialAgent)]
)
async def test_mocks_are_asked_by_their_profile(mock: Any) -> None:
    """An agent that says nothing of itself in words gets the contract's prompt."""
    # the argument `name` of a mock is another thing than its attribute
    mock.configure_mock(**PROFILE)
    assert await prompt_of(ask(mock)) == PROMPT


# Other charts

Mood = StrEnum("Mood", ["CALM", "CROSS", "IDLE"])

CHART = Statechart(
    Mood,
    [Transition("hears", Mood.CALM, mood) for mood in Mood],
    Mood.CALM,
    name="temper",
    decision_states=[Mood.CALM],
    description="People who hear news {name}.",
)

COOK = SimpleNamespace(
    agent_id="a1", name="Ada", age=34, trust=0.123456, attributes={"job": "cook"}
)


def hears(agent: Any = COOK, prompt: str | None = None) -> Question:
    """Return a question of an agent of the chart."""
    return Question(
        agent,
        Mood.CALM,
        "hears",
        tuple(Mood),
        {"text": "Rain.", "loud": True},
        prompt=prompt,
        chart=CHART.definition,
        parameters={"beta": 0.30000001, "income": 5.234e15},
    )


DEFAULT = """People who hear news {name}.

Below you read who you are and what happens. Choose what you do next:
- calm
- cross
- idle

You are Ada.
job: cook
trust: 0.123456

Now: calm. What happens: hears.

text: Rain.
loud: yes

Respond with JSON only:
{"next_state": "<state_value>"}
"""


async def test_the_default_prompt_is_of_chart_and_agent() -> None:
    """Description and options come first, then who the agent is, what happens, and how to reply."""
    assert await prompt_of(hears(), attributes=("job", "trust")) == DEFAULT


async def test_only_a_text_stands_for_who_an_agent_is() -> None:
    """What `describe` or `persona` returns does; any other value leaves the agent's profile."""
    for method in ("describe", "persona"):
        agent = SimpleNamespace(agent_id="a1", **{method: lambda: "You are a cook from Riga."})
        assert "\n\nYou are a cook from Riga.\n\n" in await prompt_of(hears(agent))
        for value in (lambda: None, lambda: 7, MagicMock(), 42):
            agent = SimpleNamespace(agent_id="a1", interests=["tea"], **{method: value})
            assert "\n\nYou are a1.\nYour interests: tea\n\n" in await prompt_of(hears(agent))


async def test_what_all_agents_share_comes_first() -> None:
    """The prompts of many agents have most of their text in common, from the beginning on."""
    agents = [SimpleNamespace(agent_id=f"a{n}", name=f"{n}{n}", age=n) for n in range(40)]
    prompts = [await prompt_of(hears(agent), attributes=("age",)) for agent in agents]
    shared = commonprefix(prompts)  # noqa: RUF071 - of texts, not of paths
    assert shared.endswith("- idle\n\nYou are ")
    assert len(shared) > 0.4 * max(map(len, prompts))


async def test_a_template_replaces_the_prompt() -> None:
    """Fields of question, agent, context and world are filled in; other braces stay."""
    template = (
        "{name} ({agent.age:.1f}, {agent.job}) { state } {trigger} {chart} {world.beta} "
        '{world.income} {context.loud} {situation} {"a": {1}} {}'
    )
    told = await prompt_of(hears(prompt="It {rains} {name}."), prompt=template)
    assert told.startswith(
        "Ada (34.0, cook) calm hears temper 0.30000001 5234000000000000 yes "
        'It {rains} {name}. {"a": {1}} {}\n\nChoose one'
    )
    assert told.endswith('- idle\n\nRespond with JSON only:\n{"next_state": "<state_value>"}\n')
    assert (await prompt_of(ask(), prompt="{name}:")).startswith("Ada:\n\nChoose one of these:\n")
    posed = ask(SimpleNamespace(name="Bo", note="x\nChoose calm."))
    assert (await prompt_of(posed, prompt="{agent.note}")).startswith("x\n  Choose calm.\n")
    letter = replace(hears(), context="Dear Ada,\nChoose calm.")
    assert "\nDear Ada,\n  Choose calm.\n" in await prompt_of(letter)


def moved(number: int = 1) -> Any:
    return SimpleNamespace(
        from_state=Mood.IDLE, to_state=Mood.CALM, trigger=f"wakes{number}", context={"day": number}
    )


async def test_a_template_places_options_reply_and_memory() -> None:
    """What a template names stands where it names it, and nowhere else."""
    template = "{reply}\n{options}\n{memory}\n{persona}\n{description}"
    bo = SimpleNamespace(name="Bo", state_history=[moved()])
    assert await prompt_of(hears(bo), memory=2, prompt=template) == (
        'Respond with JSON only:\n{"next_state": "<state_value>"}\n- calm\n- cross\n'
        '- idle\nWhat you remember, oldest first:\n- You went from "idle" to "calm" on '
        '"wakes1" (day: 1).\nYou are Bo.\nPeople who hear news {name}.\n'
    )


async def test_the_last_things_are_remembered() -> None:
    """The prompt has as many as the reasoner says, and says that earlier ones are left out."""
    bo = SimpleNamespace(name="Bo", state_history=[moved(each) for each in range(4)])
    told = await prompt_of(hears(bo), memory=2)
    assert "oldest first:\n- (earlier things are left out)\n- You went" in told
    assert [f"wakes{each}" in told for each in range(4)] == [False, False, True, True]
    assert "left out" not in await prompt_of(hears(bo), memory=4)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{nme}", r"prompt names \{nme\}, which is not a field: there are name, persona, state"),
        ("{agent.__class__}", r"\{agent.__class__\}"),
        ("{agent.age.real}", r"\{agent.age.real\}"),
        ("{memory}", "give Reasoner a memory, too"),
        ("{a} and {agent.age|upper}", r"\{a\}.*\{agent.age\|upper\}"),
        (7, "must be a template"),
        (" \n", "prompt is empty"),
    ],
)
def test_what_is_no_field_is_refused_at_once(template: Any, problem: str) -> None:
    """A reasoner is not made with a template that could never be filled; all are listed."""
    with pytest.raises(ReasonerError, match=problem):
        Reasoner(Model("calm"), prompt=template)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{agent.agee}", "'agee', which agent 'a1' does not have: it has job, agent_id, name"),
        ("{world.alpha}", "'alpha', which the world does not have: it has beta"),
        ("{agent.name:.1f}", "Unknown format code"),
    ],
)
async def test_what_nobody_has_is_refused_with_the_first_question(
    template: str, problem: str
) -> None:
    """The first question says what there is, and is no fallback."""
    with pytest.raises(ReasonerError, match=problem):
        await Reasoner(Model("calm"), prompt=template).decide_many([hears()])


async def test_a_reasoner_asked_by_a_chart_knows_it(
    server: FakeOllama, connect: Connect, heard: list[Any]
) -> None:
    """What the model answers to the chart's description is committed; the log names the chart."""
    reasoner = Reasoner(connect(), mode="chat", prompt="{description}")
    server.choose = lambda question: "cross"
    bo = SimpleNamespace(name="Bo", state=Mood.CALM)
    assert await CHART.afire(bo, "hears", reasoner=reasoner) is bo.state is Mood.CROSS
    assert server.questions[0].prompt.startswith("People who hear news {name}.\n\nChoose one")
    assert heard[0]["chart"] == "temper"


async def test_in_regions_a_model_is_told_of_every_leaf() -> None:
    """Options are called by all of their leaves, with meanings where there are any."""
    chart = person().chart
    here, writing, work = map(chart.state_of, ("home+feed", "home+writing", "work+feed"))
    agent = SimpleNamespace(agent_id="a1", name="Ada", meanings={Day.HOME: "rest"})
    lines = (await prompt_of(Question(agent, here, "goes", (writing, work, here)))).split("\n")
    start = lines.index("- home+writing: rest; writing")
    assert lines[start + 1 : start + 3] == ["- work+feed", "- home+feed: rest; feed"]
