"""What is wrong with a server, in words to act on."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from prism.llm import Check, Model
from prism.testing import Asked, FakeOllama, FakeOpenAI, Fault
from tests.kit.clocks import Clock
from tests.kit.servers import BOTH, Serve, watched

STEPS = ["server", "model", "decisions", "load", "window", "answer"]


def idle(asked: Asked) -> str:
    """Choose the same in any order."""
    return "idle" if "idle" in asked.options else asked.options[0]


async def findings(
    server: FakeOllama, model: str, timeout: float = 5
) -> list[tuple[str, bool, str]]:
    """Examine a server and give what was found."""
    async with Model(model, server.host, timeout=timeout, load_timeout=timeout) as asked:
        checks = [check async for check in asked.diagnose()]
    return [(check.what, check.ok, check.found) for check in checks if check.ok is not None]


@pytest.mark.parametrize(
    ("model", "decisions", "answer"),
    [
        ("tiny", "the model takes no decision questions: prism will chat with it", "answers idle"),
        (
            "nimble",
            "the model takes decision questions: prism will use them",
            "answers idle 90%, scrolling 10%",
        ),
    ],
)
async def test_a_good_server_passes(
    server: FakeOllama, model: str, decisions: str, answer: str
) -> None:
    """Where all is well every step is, and tells what it found and how long it took."""
    server.choose = idle
    found = await findings(server, model)
    assert [(what, ok) for what, ok, _ in found] == [(step, True) for step in STEPS]
    texts = [text for _, _, text in found]
    assert texts[0].startswith(f"Ollama {server.version} at {server.host} (")
    assert texts[1].startswith(f"{model} is available, one of 2 (")
    assert texts[2].startswith(decisions)
    assert texts[3].startswith("loaded, and kept for 30m (")
    assert texts[4].startswith("unknown: the server does not say (")
    assert texts[5].startswith(f"{answer} (")


TROUBLES: list[tuple[str, str, str, list[Fault], str | None, str]] = [
    (
        "no Ollama",
        "server",
        "tiny",
        [Fault.body(b"<html>")],
        "/api/version",
        "answered with a web page instead of a reply",
    ),
    ("silent", "server", "tiny", [Fault.hang()], "/api/version", "within 5 s"),
    ("no model", "model", "vast", [], None, "run  ollama pull vast"),
    ("no list", "model", "tiny", [Fault.status(500, "disk")], "/api/tags", "answered 500: disk"),
    ("show fails", "model", "tiny", [Fault.status(500, "disk")], "/api/show", "answered 500: disk"),
    (
        "no memory",
        "load",
        "tiny",
        [Fault.status(500, "needs more memory")],
        "/api/generate",
        "needs more memory",
    ),
    ("slow load", "load", "tiny", [Fault.hang()], "/api/generate", "no complete reply"),
    ("empty reply", "answer", "tiny", [Fault.says("")] * 2, None, "gave an empty reply"),
    (
        "no option",
        "answer",
        "tiny",
        [Fault.says("As you like.")] * 2,
        None,
        "not one of idle, scrolling; try another model, such as a larger one",
    ),
    (
        "bad chances",
        "answer",
        "nimble",
        [Fault.weighs({"idle": 1})],
        None,
        "probabilities were asked for, --mode chat may help",
    ),
]


@pytest.mark.parametrize(
    ("step", "model", "faults", "path", "message"),
    [pytest.param(*row, id=name) for name, *row in TROUBLES],
)
@pytest.mark.sampled(3)
async def test_each_kind_of_trouble_is_found(
    server: FakeOllama,
    step: str,
    model: str,
    faults: list[Fault],
    path: str | None,
    message: str,
    loop_clock: Clock,
) -> None:
    """The examination ends at the first failing step and says what is wrong."""
    # the load is well
    coming = [Fault("nothing wrong"), *faults] if step == "answer" and path is None else faults
    reached: list[str] = []
    coming = [watched(each, reached) if each.name == "hang" else each for each in coming]
    server.fail(*coming, path=path)
    finding = asyncio.create_task(findings(server, model))
    if faults and faults[0].name == "hang":
        await loop_clock.passes(5, when=lambda: reached)
    found = await finding
    assert [(what, ok) for what, ok, _ in found] == [
        (each, each != step) for each in STEPS[: STEPS.index(step) + 1]
    ]
    assert message in found[-1][2]


LACKING = "unknown: the server has no Ollama path for it; the answer will show"
OWN_PATHS = ("/api/version", "/api/tags", "/api/show", "/api/ps", "/api/generate", "/api/chat")


@pytest.mark.parametrize(
    ("decides", "answer"), [(True, "answers idle 90%, scrolling 10%"), (False, "answered 404: no")]
)
async def test_other_servers_are_judged_by_their_answer(
    serve: Serve, decides: bool, answer: str
) -> None:
    """A server without Ollama's own paths is fine if it answers; else the answer step fails."""
    server = serve(decides=decides)
    for path in OWN_PATHS:
        server.fail_always(Fault.status(404, body=b"no such page"), path=path)
    *looks, (what, ok, found) = await findings(server, "nimble")
    assert [(what, ok) for what, ok, _ in looks] == [(step, True) for step in STEPS[:-1]]
    assert all(text.startswith(LACKING) for _, _, text in looks)
    assert (what, ok) == ("answer", decides)
    assert answer in found


@BOTH
async def test_a_list_that_does_not_come_leaves_it_to_the_answer(
    server: FakeOllama, dialect: str, loop_clock: Clock
) -> None:
    """Where the list of models hangs, that is said, and the question is asked all the same."""
    lists: list[str] = []
    path = {"ollama": "/api/tags", "openai": "/v1/models"}[dialect]
    server.fail_always(watched(Fault.hang(), lists), path=path)
    server.choose = lambda _asked: "idle"
    kind: Any = dialect
    async with Model("tiny", server.host, server=kind, timeout=5, load_timeout=5) as model:
        finding = asyncio.create_task(_all_of(model))
        for number in range({"ollama": 1, "openai": 4}[dialect]):
            await loop_clock.passes(5, when=lambda count=number: len(lists) > count)
        found = {check.what: check for check in await finding}
    assert [check.ok for check in found.values()] == [True] * len(STEPS)
    assert found["model"].found == (
        f"unknown: no complete reply from tiny at {model.as_client().hosts[0]} within 5 s; "
        "the answer will show"
    )
    assert found["answer"].found.startswith("answers idle")


async def _all_of(model: Model) -> list[Check]:
    return [check async for check in model.diagnose() if check.ok is not None]


async def test_each_finding_is_told_when_it_is_known(server: FakeOllama) -> None:
    """While the model is still loaded all before that is told, and how long the load may take."""
    server.fail_always(Fault.hang(), path="/api/generate")
    model = Model("tiny", server.host, timeout=5, load_timeout=90)
    async with model, aclosing(model.diagnose()) as checks:
        found = [await anext(checks) for _ in range(4)]
    assert [(check.what, check.ok) for check in found] == [
        *((step, True) for step in STEPS[:3]),
        ("load", None),
    ]
    assert found[-1].found == "can take up to 90 s"


async def test_a_model_that_refuses_not_to_think_is_told_of(server: FakeOllama) -> None:
    """A model that answers only if it may think is well, and what prism does about it is said."""
    server.choose = idle
    server.fail(Fault.status(400, "invalid think value: false"), path="/api/chat")
    *_, (what, ok, found) = await findings(server, "tiny")
    assert (what, ok) == ("answer", True)
    assert found.startswith("answers idle; it refuses think, so prism leaves that out (")


async def test_a_load_that_is_refused_leaves_it_to_the_answer(server: FakeOllama) -> None:
    """A server that does not take the request to load may answer all the same, so that is tried."""
    server.fail_always(Fault.status(400, "prompt is required"), path="/api/generate")
    *_, (load, load_ok, found), _, (answer, ok, _) = await findings(server, "tiny")
    assert (load, load_ok, answer, ok) == ("load", True, "answer", True)
    assert found.startswith(
        f"unknown: {server.host} answered 400: prompt is required; the answer will show"
    )


async def test_a_server_that_only_chats_may_lack_the_other_paths(serve: Serve) -> None:
    """A model that neither says nor shows that it decides is asked to chat."""
    server = serve(decides=False, choose=idle)
    server.fail_always(Fault.status(404, body=b"no such page"), path="/api/show")
    assert (await findings(server, "tiny"))[-1][2].startswith("answers idle (")


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        (
            "tiny",
            "answers idle; with the options in the other order scrolling: the order changes 100%",
        ),
        (
            "nimble",
            "answers idle 90%, scrolling 10%; with the options in the other order idle 10%, "
            "scrolling 90%: the order changes 80%",
        ),
    ],
)
async def test_a_model_that_prefers_the_first_place_is_found_out(
    server: FakeOllama, model: str, answer: str
) -> None:
    """The question is put in two orders, and what that changes is told."""
    what, ok, found = (await findings(server, model))[-1]
    assert (what, ok) == ("answer", True)
    assert found.startswith(answer)
    assert "runs shuffle it" in found


async def test_options_with_hardly_any_mass_are_told() -> None:
    """A model whose letters have hardly any probability is well, and told of."""
    with FakeOpenAI() as server:
        server.fail_always(Fault.weighs({"A": 0.004, "B": 0.002, "Sure": 0.9}))
        async with Model("llama3.2", [server.host], server="openai") as model:
            *_, check = [check async for check in model.diagnose()]
    assert check.ok
    assert "without probabilities, since all options together have 0.0" in check.found


async def test_a_model_that_answers_when_asked_once_more_is_well() -> None:
    """The trial is asked in other words after a useless reply, as a run does, and says so."""
    with FakeOllama(models=["tiny"]) as server:
        server.fail(Fault("nothing wrong"), Fault.says("As you like."), path="/api/chat")
        what, ok, found = (await findings(server, "tiny"))[-1]
    assert (what, ok) == ("answer", True)
    assert "but only when asked once more, as a run asks, too" in found


@pytest.mark.parametrize(("times", "ok"), [(1, True), (2, False)])
@pytest.mark.parametrize("fault", [Fault.status(529, "busy"), Fault.drop()], ids=["busy", "broken"])
async def test_what_passes_is_looked_at_again(
    server: FakeOllama, fault: Fault, times: int, ok: bool
) -> None:
    """A failure that a run would outlast is no finding of its own, but told beside one."""
    server.choose = idle
    server.fail(*[fault] * times, path="/api/chat")
    what, was_ok, found = (await findings(server, "tiny"))[-1]
    assert (what, was_ok) == ("answer", ok)
    assert ("answers idle, when asked again after: " in found) == ok
    assert "busy" in found or "broke" in found


async def test_a_server_that_is_not_there_is_the_first_finding(server: FakeOllama) -> None:
    """Where nothing listens the one finding says what to start."""
    server.stop()
    ((what, ok, found),) = await findings(server, "tiny")
    assert (what, ok) == ("server", False)
    assert (
        found == f"cannot reach {server.host} (All connection attempts failed): check that "
        "'ollama serve' is running there"
    )


@pytest.mark.parametrize(
    ("model", "models", "shows", "found"),
    [
        ("vast", ["tiny"], False, "vast is not among its 2: tiny, nimble; run  ollama pull vast"),
        ("vast", ["vast:1b"], True, "vast is not among its 2: vast:1b, nimble; "),
        (
            "m9",
            [f"m{n}" for n in range(8)],
            False,
            "m9 is not among its 9: m0, m1, m2, m3, m4, ...",
        ),
        ("tiny", ["TINY:latest"], False, None),
        ("library/tiny:latest", ["tiny"], False, None),
    ],
)
async def test_a_model_that_is_not_in_the_list_is_not_there(
    serve: Serve, model: str, models: list[str], shows: bool, found: str | None
) -> None:
    """A model is there if the list has it by any of its names, whatever else the server says."""
    server = serve(models=models)
    body = b'{"capabilities": ["completion"], "model_info": {}}'
    says = Fault.body(body) if shows else Fault.status(404, body=b"no such page")
    server.fail_always(says, path="/api/show")
    steps = await findings(server, model)
    (what, ok, text) = steps[1]
    assert (what, ok) == ("model", found is None)
    if found is not None:
        assert text.startswith(f"{server.host} does not have the model: {found}")
        assert len(steps) == 2
