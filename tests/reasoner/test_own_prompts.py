"""Prompts of the user's own, and the default prompt of charts other than the feed's."""

from enum import StrEnum
from os.path import commonprefix
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from prism.errors import ReasonerError
from prism.reasoner._prompts import (
    PromptSettings,
    chat_prompt,
    own_prompt,
)
from prism.statechart import AgentState, Question, Reasoner, Recollection, Statechart, Transition
from prism.testing import FakeOllama
from tests.kit.servers import Connect, chats_of

Mood = StrEnum("Mood", ["CALM", "CROSS", "IDLE"])
Other = StrEnum("Other", ["CALM", "CROSS"])

CHART = Statechart(
    Mood,
    [Transition("hears", Mood.CALM, mood) for mood in Mood],
    Mood.CALM,
    name="temper",
    decision_states=[Mood.CALM],
    description="People who hear news {name}.",
)

ADA = SimpleNamespace(agent_id="a1", name="Ada", age=34, trust=0.123456, attributes={"job": "cook"})


def ask(agent: Any = ADA, context: Any = None, prompt: str | None = None) -> Question:
    """Return a question of an agent of the chart."""
    return Question(
        agent,
        Mood.CALM,
        "hears",
        tuple(Mood),
        {"text": "Rain.", "loud": True} if context is None else context,
        prompt=prompt,
        chart=CHART.definition,
        parameters={"beta": 0.30000001},
    )


def own(given: Any, **settings: Any) -> PromptSettings:
    """Return settings with prompts of the user's own."""
    prompt = own_prompt(given, has_memory=settings.get("memory") is not None)
    return PromptSettings(prompt=prompt, **settings)


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


def test_the_default_prompt_is_of_chart_and_agent() -> None:
    """Description and options come first, then who the agent is, what happens, and how to reply."""
    assert chat_prompt(ask(), PromptSettings(attributes=("job", "trust"))) == DEFAULT


def test_no_chart_but_the_feeds_speaks_of_the_feed() -> None:
    """Neither the prompt nor a state's meaning is the feed's where a state has the same text."""
    for word in ("social media", "browsing", "the user"):
        assert word not in chat_prompt(ask()).lower()


def test_an_agent_describes_itself() -> None:
    """What `describe` or `persona` says stands for who the agent is."""
    for method in ("describe", "persona"):
        agent = SimpleNamespace(agent_id="a1", **{method: lambda: "You are a cook from Riga."})
        assert "\n\nYou are a cook from Riga.\n\n" in chat_prompt(ask(agent))


@pytest.mark.parametrize("method", ["persona", "describe"])
@pytest.mark.parametrize("says", [lambda: None, lambda: 7, MagicMock(), 42, None])
def test_only_text_counts_as_what_an_agent_says_of_itself(method: str, says: Any) -> None:
    """Any other value than a returned text leaves the agent's profile in place."""
    agent = SimpleNamespace(agent_id="a1", interests=["tea"], **{method: says})
    assert chat_prompt(ask(agent)) == chat_prompt(
        ask(SimpleNamespace(agent_id="a1", interests=["tea"]))
    )


def test_a_chart_that_extends_the_feeds_keeps_the_contracts_prompt() -> None:
    """Agents of a chart with the feed's states and others are asked as those of the feed."""
    from prism.statechart import social_media_chart

    chart = social_media_chart().extended(states=["muting"])
    state = chart.state_type("evaluating")
    question = Question(ADA, state, "decides", (state, chart.state_type("muting")))
    assert chat_prompt(question).startswith("You are Ada, a social media user.\n")
    assert "- evaluating: Look more closely at this post\n- muting: muting\n" in chat_prompt(
        question
    )


def test_what_all_agents_share_comes_first() -> None:
    """The prompts of many agents have most of their text in common, from the beginning on."""
    agents = [SimpleNamespace(agent_id=f"a{n}", name=f"{n}{n}", age=n) for n in range(40)]
    prompts = [chat_prompt(ask(agent), PromptSettings(attributes=("age",))) for agent in agents]
    shared = commonprefix(prompts)  # noqa: RUF071 - of texts, not of paths
    assert shared.endswith("- idle\n\nYou are ")
    assert len(shared) > 0.4 * max(map(len, prompts))


def test_a_template_says_what_the_model_is_told() -> None:
    """Fields of question, agent, context and world are filled in; other braces stay."""
    text = own(
        "{name} ({agent.age}, {agent.job}) {state} {trigger} {chart} {world.beta} {context.loud}"
        ' {situation} {"a": {1}} {}'
    )
    told = chat_prompt(ask(prompt="It {rains} {name}."), text)
    assert told.startswith(
        "Ada (34, cook) calm hears temper 0.30000001 yes "
        'It {rains} {name}. {"a": {1}} {}\n\nChoose one'
    )
    assert told.endswith('- idle\n\nRespond with JSON only:\n{"next_state": "<state_value>"}\n')


def test_a_template_places_options_reply_and_memory() -> None:
    """What a template names stands where it names it, and nowhere else."""
    memory = Recollection(2)
    settings = own("{reply}\n{options}\n{memory}\n{persona}\n{description}", memory=memory)
    question = ask(SimpleNamespace(name="Bo", state_history=[_moved()]))
    told = chat_prompt(question, settings)
    assert told == (
        'Respond with JSON only:\n{"next_state": "<state_value>"}\n- calm\n- cross\n'
        '- idle\nWhat you remember, oldest first:\n- You went from "idle" to "calm" on '
        '"wakes".\nYou are Bo.\nPeople who hear news {name}.\n'
    )


def _moved() -> Any:
    return SimpleNamespace(from_state=Mood.IDLE, to_state=Mood.CALM, trigger="wakes", context=None)


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ("{nme}", r"prompt names \{nme\}, which is not a field: there are name, persona, state"),
        ("{agent.__class__}", r"\{agent.__class__\}"),
        ("{agent.age.real}", r"\{agent.age.real\}"),
        ("{question.agent}", r"\{question.agent\}"),
        ("{memory}", "give Reasoner a memory, too"),
        ("{a} and {agent.age|upper}", r"\{a\}.*\{agent.age\|upper\}"),
        ({"temper": "x"}, "must be a template or a function"),
        (7, "must be a template or a function"),
        (" \n", "prompt is empty"),
    ],
)
def test_what_is_no_field_is_refused_at_once(template: Any, named: str) -> None:
    """A reasoner is not made with a template that could never be filled; all are listed."""
    with pytest.raises(ReasonerError, match=named):
        Reasoner(SimpleNamespace(chat=lambda messages: None), prompt=template)


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{agent.agee}", "'agee', which agent 'a1' does not have: it has job, agent_id, name"),
        ("{world.alpha}", "'alpha', which the world does not have: it has beta"),
        ("{context.quiet}", "'quiet', which the context does not have: it has text, loud"),
    ],
)
async def test_what_nobody_has_is_refused_with_the_first_question(
    template: str, told: str, server: FakeOllama, connect: Connect
) -> None:
    """The first question says what there is, and is no fallback."""
    reasoner = Reasoner(connect(), mode="chat", prompt=template)
    with pytest.raises(ReasonerError, match=told):
        await reasoner.decide_many([ask()])
    assert server.questions == []


def test_a_function_words_the_question_by_its_chart_and_state() -> None:
    """It gets the question, and its text is the prompt; anything but a text is an error."""
    by_state = {Mood.CALM: "mine", Mood.CROSS: "other"}
    settings = own(lambda question: by_state[question.state])
    assert chat_prompt(ask(), settings).startswith("mine\n\nChoose one of these:")
    with pytest.raises(ReasonerError, match="must return text, got 7"):
        chat_prompt(ask(), own(lambda question: 7))


async def test_a_reasoner_asked_by_a_chart_knows_it(server: FakeOllama, connect: Connect) -> None:
    """An event fired on a chart is asked about with the chart's description and prompt."""
    reasoner = Reasoner(connect(), mode="chat", prompt="{description}")
    agent = SimpleNamespace(name="Bo", state=Mood.CALM)
    await CHART.afire(agent, "hears", reasoner=reasoner)
    (chat,) = chats_of(server)
    assert chat["messages"][0]["content"].startswith("People who hear news {name}.\n\nChoose one")


async def test_a_function_that_fails_is_raised(server: FakeOllama, connect: Connect) -> None:
    """An exception of the user's own prompt reaches its author, with its file and line."""

    def told(question: Question) -> str:
        return f"{question.agent.name} {1 / (question.agent.age - 34):.0f}"

    reasoner = Reasoner(connect(), mode="chat", prompt=told)
    bo = SimpleNamespace(agent_id="a2", name="Bo", age=35)
    with pytest.raises(ReasonerError, match=r"ZeroDivisionError: .*own_prompts\.py:\d+") as got:
        await reasoner.decide_many([ask(bo), ask()])
    assert isinstance(got.value.__cause__, ZeroDivisionError)
    assert [each.source for each in await reasoner.decide_many([ask(bo)])] == ["model"]


def test_the_feeds_states_can_have_a_prompt_of_their_own() -> None:
    """A prompt for a state of the feed takes the place of the contract's."""
    state = AgentState.EVALUATING
    question = Question(ADA, state, "decides", (AgentState.SCROLLING, AgentState.COMPOSING))
    told = chat_prompt(question, own("{name}:"))
    assert told.startswith("Ada:\n\nChoose one of these:\n- scrolling: Continue browsing")
