"""What agents choose from where a model decides, and what a model writes for them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from prism.agents import SocialAgent, synthetic_population
from prism.reasoner import Decision, PolicyReasoner, Question
from prism.social import Draft, Feed, Post
from prism.statechart import AgentState
from prism.testing import ScriptedWriter
from tests.kit.worlds import Done
from tests.kit.writers import LateWriter

REPLY, RESHARE = AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE
ACTS = {REPLY.value: "reply", RESHARE.value: "reshare", AgentState.COMPOSING.value: "post"}


class Chooser(PolicyReasoner):
    """Stands for a model: takes the first of its favourites that it is offered."""

    chooses_acts = True

    def __init__(self, *favourites: AgentState) -> None:
        super().__init__()
        self.favourites = favourites
        self.questions: list[Question] = []

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        self.questions += questions
        return [
            Decision(
                next(
                    (each for each in self.favourites if each in question.options),
                    AgentState.SCROLLING,
                ),
                "model",
            )
            for question in questions
        ]


def people() -> list[SocialAgent]:
    """Return three agents who are interested in the same, each following both others."""
    names = ("ada", "bob", "cleo")
    return [
        SocialAgent(name, interests=["music"], following=[each for each in names if each != name])
        for name in names
    ]


def simulated(run_logged: Any, reasoner: Any, **options: Any) -> Done:
    """Run three agents for two rounds."""
    options = {"seed": 1, "rounds": 2, **options}
    done: Done = run_logged(people(), None, reasoner=reasoner, **options)
    return done


def acts_of(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield for each post that was decided on, what was chosen and what came of it."""
    chosen: dict[str, str] = {}
    for event in events:
        if event["event"] == "reasoner.decision":
            chosen[event["agent_id"]] = event["chosen"]
        elif event["event"] == "post.published" and event["agent_id"] in chosen:
            yield chosen.pop(event["agent_id"]), event["kind"]


@pytest.mark.parametrize("act", ACTS, ids=ACTS.values())
def test_what_a_model_chooses_is_what_the_agent_does(run_logged: Any, act: str) -> None:
    """An agent that chooses to reply replies, whatever the shares of the parameters are."""
    done = simulated(run_logged, Chooser(AgentState(act)))
    assert {*acts_of(done.events())} == {(act, ACTS[act])}


def test_a_post_of_ones_own_is_on_ones_own_topics(run_logged: Any) -> None:
    """Also if it was decided on over the post of another, on other topics."""
    agents = [SocialAgent("ada", interests=["music"], following=["bob"])]
    agents.append(SocialAgent("bob", interests=["chess"], following=["ada"]))
    model, parameters = Chooser(AgentState.COMPOSING), {"preset": "classic", "engagement": 0.0}
    done: Done = run_logged(agents, None, reasoner=model, parameters=parameters, rounds=3)
    written = {(each["agent_id"], *each["topics"]) for each in done.events("post.published")}
    assert {topic for question in model.questions for topic in question.context.topics}
    assert written == {("ada", "music"), ("bob", "chess")}


def test_what_an_agent_may_not_do_again_is_not_offered(run_logged: Any) -> None:
    """One that has replied as often as it may, or has reshared a thread, has other options."""
    model = Chooser(REPLY, RESHARE)
    limits = {"preset": "classic", "replies_per_cascade": 1, "reshares_once": True}
    done = simulated(run_logged, model, rounds=6, parameters=limits)
    done_by = [
        (each["agent_id"], each["root_id"], each["kind"])
        for each in done.events("post.published")
        if each["kind"] != "post"
    ]
    assert len(done_by) == len({*done_by}) > 6
    assert any(REPLY not in each.options for each in model.questions)


# Texts


def spoken(call: Any) -> str:
    return json.dumps({"text": f"{call.agent_id} says so."})


def test_a_writer_is_told_the_post_and_the_thread(run_logged: Any) -> None:
    """The prompt for a reply has what is answered, and what stands above it."""
    writer = ScriptedWriter(spoken)
    done = simulated(run_logged, Chooser(REPLY), writer=writer, rounds=3)
    posts = {each["post_id"]: each for each in done.events("post.published")}
    deep = next(
        each
        for each in posts.values()
        if each["kind"] == "reply" and each["parent_id"] != each["root_id"]
    )
    parent = posts[deep["parent_id"]]
    above = posts[parent["parent_id"]]
    prompt = next(
        call.prompt
        for call in writer.calls
        if call.agent_id == deep["agent_id"] and json.dumps(parent["text"]) in call.prompt
    )
    assert f"You reply to this post by {parent['agent_id']}:" in prompt
    assert f"{above['agent_id']}: {json.dumps(above['text'])}" in prompt
    assert prompt.count(json.dumps(parent["text"])) == 1


def test_a_long_thread_says_what_is_left_out(run_logged: Any) -> None:
    """Of a long thread, the prompt has the first post and the last ones."""
    writer = ScriptedWriter(spoken)
    simulated(run_logged, Chooser(REPLY), writer=writer, rounds=14)
    (lines, *_) = (
        call.prompt.partition("thread:\n")[2].partition("\n\n")[0].splitlines()
        for call in writer.calls
        if "posts are left out here" in call.prompt
    )
    assert len(lines) == 9
    assert lines[1].strip().startswith("(")
    assert not lines[0].startswith(" ")


class Poet(Feed):
    """A feed with words and prompts of its own."""

    preset = "classic"

    def compose(self, *_: Any) -> str:
        return "Roses are red."

    def writing_prompt(self, reader: Any, kind: Any, post: Post | None, draft: Draft) -> str:
        return f"{reader.name} writes a {kind} like {draft.text}"


def test_a_feed_has_words_and_prompts_of_its_own(run_logged: Any) -> None:
    """`compose` writes without a model, and `writing_prompt` asks one."""
    done = simulated(run_logged, Chooser(REPLY), world=Poet())
    texts = {each["text"] for each in done.events("post.published") if each["kind"] == "reply"}
    assert texts == {"Roses are red."}
    writer = ScriptedWriter(spoken)
    simulated(run_logged, Chooser(REPLY), world=Poet(), writer=writer)
    prompts = [call.prompt.rpartition("\n")[2] for call in writer.calls]
    assert "ada writes a reply like Roses are red." in prompts


def without_words(events: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield what happened, with the templates in place of a model's words."""
    for event in events:
        if event["event"] in ("statechart.transition", "post.published", "reasoner.decision"):
            text = event.get("template", event.get("text"))
            yield event["event"], event["agent_id"], event["round"], event["tick"], text


@pytest.mark.slow
def test_words_move_nobody(run_logged: Any) -> None:
    """With a writer, every agent makes the same transitions, posts and decisions."""
    population = synthetic_population(30, seed=2)
    plain, written = (
        run_logged(population.agents, population.posts, seed=2, rounds=3, writer=writer)
        for writer in (None, LateWriter(share=0.2))
    )
    assert sorted(without_words(written.events())) == sorted(without_words(plain.events()))
    posts = [each for each in written.events("post.published") if "source" in each]
    assert {each["source"] for each in posts} == {"model", "fallback"}
    for post in posts:
        assert (post["text"] == post["template"]) == (post["source"] == "fallback")
