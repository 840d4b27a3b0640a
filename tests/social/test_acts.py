"""What agents choose from where a model decides: replying, resharing, liking, their own post."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from prism import Run, replay, resume
from prism.agents import SocialAgent
from prism.errors import InputError
from prism.llm import Model
from prism.reasoner import Router
from prism.runlog import ReplayReasoner
from prism.runs import WriterOptions
from prism.science import Policy
from prism.social import Draft, Feed
from prism.social._writing import thread_above
from prism.statechart import (
    AgentState,
    Decision,
    PolicyReasoner,
    Question,
    social_feed_chart,
)
from prism.testing import FakeOllama, ScriptedWriter
from prism.worlds import SwitchModel
from tests.kit.models import varied
from tests.kit.runs import LoggedRun

REPLY, RESHARE = AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE
ACTS = {REPLY.value: "reply", RESHARE.value: "reshare", AgentState.COMPOSING.value: "post"}


class ActingPolicy(PolicyReasoner):
    """A policy that chooses between all acts."""

    chooses_acts = True


class Chooser(PolicyReasoner):
    """Stands for a model: takes the first of its favourites that it is offered, and says why."""

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
                said=f"{question.context.author_id} is right.",
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


def simulated(run_logged: Any, reasoner: Any, **options: Any) -> LoggedRun:
    """Run three agents for two rounds."""
    options = {"seed": 1, "rounds": 2, **options}
    done: LoggedRun = run_logged(people(), None, reasoner=reasoner, **options)
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
    """Who chooses to reply replies, and the shares of the parameters have no say in it."""
    done = simulated(run_logged, Chooser(AgentState(act)))
    assert {*acts_of(done.events())} == {(act, ACTS[act])}


def test_a_policy_chooses_as_before(run_logged: Any) -> None:
    """Without a model nobody is offered to reply, and the chart is the plain one."""
    done = simulated(run_logged, PolicyReasoner(1))
    assert done.events("run.started")[0]["chart"] == "social_media"
    offered = {option for each in done.events("reasoner.decision") for option in each["options"]}
    assert not offered & {REPLY.value, RESHARE.value}


def test_agents_of_a_policy_keep_their_options_beside_those_of_a_model(run_logged: Any) -> None:
    """In a mixed run each agent has the options that belong to who decides for it."""
    mixed = Router(
        {"model": Chooser(REPLY), "policy": PolicyReasoner(1)},
        lambda agent: "model" if agent.agent_id == "ada" else "policy",
    )
    done = simulated(run_logged, mixed, rounds=4)
    decisions = done.events("reasoner.decision")
    offered = {each["agent_id"]: REPLY.value in each["options"] for each in decisions}
    assert offered == {"ada": True, "bob": False, "cleo": False}


def test_what_an_agent_may_not_do_again_is_not_offered(run_logged: Any) -> None:
    """Who has replied as often as it may, or has reshared a thread, has the other options left."""
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


def test_composing_means_a_post_of_ones_own(run_logged: Any) -> None:
    """The prompt says what composing means beside replying, unless the user does."""
    model = Chooser()
    simulated(run_logged, model)
    assert model.questions[0].meanings == {AgentState.COMPOSING: "Write a post of your own"}


def test_a_composer_that_draws_the_kind_gives_its_words_alone(run_logged: Any) -> None:
    """A composer of the user's own keeps writing, and the agent does what it has chosen."""

    class Poet:
        def compose(self, agent: Any, post: Any, stream: Any) -> Draft:
            return Draft("post", "Roses are red.", ("roses",))

    done = simulated(run_logged, Chooser(REPLY), composer=Poet())
    replies = [each for each in done.events("post.published") if each["kind"] == "reply"]
    assert {each["text"] for each in replies} == {"Roses are red."}


def test_the_log_agrees_with_the_chart(run_logged: Any) -> None:
    """A run with a model follows the chart of its name."""
    done = simulated(run_logged, Chooser(REPLY), parameters={"posts_per_tick": 0.05})
    chart = social_feed_chart(acts=True)
    assert done.events("run.started")[0]["chart"] == chart.name
    allowed = {(t.source, t.trigger, t.target) for t in chart.transitions}
    for each in done.events("agent.transition"):
        assert (each["from_state"], each["trigger"], each["to_state"]) in allowed


def test_a_writer_is_told_the_post_the_thread_and_the_reason(run_logged: Any) -> None:
    """The prompt for a reply has what is answered, what stands above it, and why."""
    writer = ScriptedWriter(lambda call: json.dumps({"text": f"{call.agent_id} says so."}))
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
    assert f"Why you do this: {parent['agent_id']} is right." in prompt


def test_a_writer_has_a_prompt_of_the_users_own(run_logged: Any) -> None:
    """A template names the fields that it wants, and is told no others."""
    writer = ScriptedWriter(lambda call: json.dumps({"text": f"{call.agent_id} says so."}))
    template = "{name} writes a {kind} to {author}, as {reason} {agent.interests}"
    simulated(run_logged, Chooser(REPLY), writer=writer, writer_prompt=template)
    prompt = next(call.prompt for call in writer.calls if call.key == "reply")
    assert prompt.endswith("is right. music") or "is right." in prompt
    assert "social media user" not in prompt


def test_a_writers_prompt_with_an_unknown_field_is_refused() -> None:
    """What is no field is named, with those that there are."""
    writer = WriterOptions(Model("tiny"), prompt="{post} {mood}")
    with pytest.raises(
        InputError, match=r"\{mood\}, which is not a field: there are name, persona"
    ):
        _ = Run(Feed, 4, writer=writer).agents


def test_a_long_thread_says_what_is_left_out(run_logged: Any) -> None:
    """Of a long thread the first post and the last ones are told."""
    done = simulated(run_logged, Chooser(REPLY), rounds=12)
    deepest = max(done.simulation.world.posted.posts, key=lambda post: post.depth)
    lines = thread_above(deepest).splitlines()
    assert deepest.depth > 8
    assert lines[0].startswith(deepest.root.author_id)
    assert lines[1] == f"  ({deepest.depth - 8} posts are left out here)"
    assert lines[-1].strip().startswith(deepest.parent.author_id)
    assert len(lines) == 9


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["classic", "participation"])
def test_a_run_is_repeated_and_resumed_with_its_acts(tmp_path: Path, preset: str) -> None:
    """A replay writes the same bytes without the model, and so does a run that goes on."""
    with FakeOllama(choose=varied) as server:
        model = Model("llama3.2", hosts=(server.host,), reasons=True)
        run = Run(
            Feed,
            12,
            rounds=3,
            seed=3,
            reasoner=model,
            writer=WriterOptions(),
            parameters={"preset": preset},
        )
        run.keep(tmp_path / "first")
    log = (tmp_path / "first" / "events.jsonl").read_bytes()
    assert {kind for _, kind in acts_of(list(map(json.loads, log.splitlines())))} & {
        "reply",
        "reshare",
    }
    run.replaying(tmp_path / "first").keep(tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log
    assert Run.from_config(run.to_config(), tmp_path).to_config() == run.to_config()


@pytest.mark.parametrize("options", [[REPLY, AgentState.SCROLLING], [AgentState.SCROLLING]])
def test_a_calibrated_policy_has_the_options_of_its_runs(options: list[AgentState]) -> None:
    """What was fitted to decisions of a model is offered what the model was offered."""
    policy = Policy({"evaluating": {"decides": {str(each): 0.5 for each in options}}})
    assert policy.reasoner().chooses_acts == (REPLY in options)


def test_a_replay_of_a_policy_offers_what_it_was_offered(run_logged: Any, tmp_path: Path) -> None:
    """Where a log does not say who decided, its other decisions do."""
    limits = {"preset": "classic", "replies_per_cascade": 1, "reshares_once": True}
    done = simulated(run_logged, ActingPolicy(1), rounds=6, parameters=limits)
    log = tmp_path / "first.jsonl"
    log.write_bytes(done.log)
    again = simulated(run_logged, ReplayReasoner(log, verbatim=True), rounds=6, parameters=limits)
    assert again.log == done.log


@pytest.mark.slow
@pytest.mark.parametrize("begins", ["policy", "model"])
@pytest.mark.sampled(2)
def test_a_run_with_acts_is_switched_to_another_model(begins: str, tmp_path: Path) -> None:
    """Who is switched has all acts of a model from then on, also resumed and replayed."""
    with FakeOllama(models=["tiny", "large"], choose=varied) as server:
        switch = SwitchModel(2, "large", (server.host,), mode="chat", share=0.5)
        run = feed_at(server).replace(treatments=(switch,))
        if begins == "policy":
            run = run.replace(reasoner=None)
        whole = kept(run, tmp_path / "whole")
        resumed = killed_and_resumed(run, tmp_path / "stopped")
    assert told(resumed) == told(whole)
    replay(tmp_path / "stopped", tmp_path / "again")
    assert log_of(tmp_path / "again") == log_of(tmp_path / "stopped")

    posts = [event for event in whole if event.get("trigger") == "decides" and "options" in event]
    models = {event.get("model") for event in posts}
    offered = {event["source"]: set[str]() for event in posts}
    for event in posts:
        offered[event["source"]] |= {*event["options"]}
    assert models == {"large", None if begins == "policy" else "tiny"}
    assert {REPLY.value, RESHARE.value} <= offered["model"]
    assert REPLY.value not in offered.get("policy", ())


def feed_at(server: FakeOllama) -> Run[Any]:
    """Return a run whose agents choose between all acts, by a model on a server."""
    model = Model("tiny", (server.host,), mode="chat")
    return Run(Feed, 15, rounds=3, ticks=8, seed=2, reasoner=model)


def log_of(folder: Path) -> bytes:
    """Return the log of a run."""
    return (folder / "events.jsonl").read_bytes()


def kept(run: Run[Any], folder: Path) -> list[dict[str, Any]]:
    """Run to the end; return the events."""
    run.keep(folder)
    return [json.loads(line) for line in log_of(folder).splitlines()]


def killed_and_resumed(run: Run[Any], folder: Path) -> list[dict[str, Any]]:
    """End a run without a checkpoint after two rounds, and resume it; return the events."""

    def killed(summary: Any) -> None:
        if summary.number == 2:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        run.keep(folder, on_round=killed, checkpoint_every=1e9)
    resume(folder)
    return [json.loads(line) for line in log_of(folder).splitlines()]


def told(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return events without what a clock has measured."""
    measured = ("latency", "queue_seconds", "request_seconds")
    return [{key: value for key, value in event.items() if key not in measured} for event in events]
