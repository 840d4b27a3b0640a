"""A model that reads its prompts, on real servers: the window, habits, junk and restarts."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from prism.errors import FieldValueError
from prism.testing import FakeOllama, FakeOpenAI, ReadingModel
from prism.testing._server.reading_model import count_tokens
from tests.kit.waiting import until, wait_until

CHOICE = (
    "Your interests: trains\n\nNight trains are back.\n\nChoose one:\n"
    "- resting: Take a break\n- replying: Write a reply\n\n"
    'Respond with JSON only:\n{"next_state": "<state_value>"}'
)
LETTERS = CHOICE.replace("- resting", "A: resting").replace("- replying", "B: replying")


CLIENT = httpx.Client(verify=False)
"""One for all tests: each new one reads the certificates of the machine."""


@pytest.fixture(scope="module", autouse=True)
def _closed_client() -> Iterator[None]:
    """Close the client behind the last test."""
    yield
    CLIENT.close()


def ask(server: FakeOllama, prompt: str, **options: Any) -> dict[str, Any]:
    """Put a prompt to Ollama's chat and return the reply."""
    body = {
        "model": "llama3.2",
        "messages": [{"role": "user", "content": prompt}],
        "stream": False,
        "options": options,
    }
    reply: dict[str, Any] = CLIENT.post(f"{server.host}/api/chat", json=body).json()
    return reply


def complete(server: FakeOpenAI, *turns: str, **further: Any) -> httpx.Response:
    """Put a conversation to a chat of OpenAI's, its turns by user and assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(turns)]
    body = {"model": "llama3.2", "messages": messages, **further}
    return CLIENT.post(f"{server.host}/v1/chat/completions", json=body)


def text_of(response: httpx.Response) -> str:
    """Return what the model wrote."""
    return str(response.json()["choices"][0]["message"]["content"])


def test_it_answers_from_what_it_reads() -> None:
    """The same server chooses by the prompt, as JSON where the prompt wants it."""
    with FakeOllama(reader=ReadingModel()) as server:
        keen = ask(server, CHOICE)["message"]["content"]
        cold = ask(server, CHOICE.replace("trains", "chess", 1))["message"]["content"]
    assert [json.loads(text) for text in (keen, cold)] == [
        {"next_state": "replying"},
        {"next_state": "resting"},
    ]


def test_a_longer_prompt_loses_its_front_in_silence() -> None:
    """A prompt beyond the window is cut to half of it, with status 200 and the count of a cut."""
    reader = ReadingModel(window=200)
    with FakeOllama(reader=reader) as server:
        reply = ask(server, CHOICE.replace("\n\nNight", f"\n\n{'words ' * 300}\n\nNight"))
    assert (reply["prompt_eval_count"], reader.cuts) == (102, 1)
    assert json.loads(reply["message"]["content"]) == {"next_state": "resting"}


def test_num_ctx_is_the_window_and_another_loads_the_model_anew() -> None:
    """Ollama's num_ctx takes the place of the window; a change of it reloads the model."""
    long = CHOICE.replace("\n\nNight", f"\n\n{'words ' * 300}\n\nNight")
    with FakeOllama(reader=ReadingModel(window=200)) as server:
        replies = [ask(server, long, num_ctx=size) for size in (1000, 1000, 500, 1000)]
        loaded = CLIENT.get(f"{server.host}/api/ps").json()["models"]
    assert [reply["prompt_eval_count"] for reply in replies] == [count_tokens(long) + 4] * 4
    assert server.loads == 3
    assert loaded == [{"model": "llama3.2", "name": "llama3.2", "context_length": 1000}]


def test_a_server_may_refuse_what_is_too_long() -> None:
    """With too_long="refuse" a longer prompt is a 400 that names the window."""
    with FakeOpenAI(reader=ReadingModel(window=50, too_long="refuse")) as server:
        refused = complete(server, CHOICE)
        listed = CLIENT.get(f"{server.host}/v1/models").json()["data"]
    assert refused.status_code == 400
    assert "maximum context length is 50 tokens" in refused.json()["error"]["message"]
    assert listed[0]["max_model_len"] == 50


@pytest.mark.parametrize("limits", [{"num_predict": 3}, {"num_ctx": count_tokens(CHOICE) + 7}])
def test_a_reply_without_room_ends_by_length(limits: Mapping[str, int]) -> None:
    """A reply shares the window with its prompt, and obeys num_predict; it says how it ended."""
    with FakeOllama(reader=ReadingModel()) as server:
        reply = ask(server, CHOICE, **limits)
        whole = ask(server, CHOICE)
    assert (reply["done_reason"], reply["eval_count"]) == ("length", 3)
    assert whole["message"]["content"].startswith(reply["message"]["content"])
    assert whole["done_reason"] == "stop"


def test_the_options_may_have_hardly_any_mass() -> None:
    """Log-probabilities give the options their mass, and the chosen one need not be listed."""
    with FakeOpenAI(reader=ReadingModel(option_mass=0.0014)) as server:
        reply = complete(server, LETTERS, logprobs=True, top_logprobs=20).json()["choices"][0]
    token = next(one for one in reply["logprobs"]["content"] if one["token"] == "B")
    assert json.loads(reply["message"]["content"]) == {"next_state": "B"}
    assert token["logprob"] < -6
    assert len(token["top_logprobs"]) == 20
    assert not {"A", "B"} & {one["token"] for one in token["top_logprobs"]}


def test_it_may_prefer_the_first_option() -> None:
    """Of many questions the share is answered with the first option, whatever it is."""
    with FakeOpenAI(reader=ReadingModel(first_option=0.5)) as server:
        replies = [text_of(complete(server, f"Day {n}.\n\n{LETTERS}")) for n in range(40)]
    firsts = sum(json.loads(text)["next_state"] == "A" for text in replies)
    assert 8 <= firsts <= 32


def test_junk_lasts_until_the_question_is_reworded() -> None:
    """The same prompt gets the same junk; a further message or other words get an answer."""
    with FakeOpenAI(reader=ReadingModel(junk=1.0)) as server:
        junk = [text_of(complete(server, CHOICE)) for _ in range(2)]
        answered = complete(server, CHOICE, junk[0], "That was no JSON. Choose one.\n" + CHOICE)
        reworded = complete(server, f"{CHOICE}\n\nYour last reply was not JSON.")
    assert junk[0] == junk[1]
    assert "next_state" not in junk[0]
    for reply in (answered, reworded):
        assert json.loads(text_of(reply)) == {"next_state": "replying"}


def test_about_the_given_share_of_questions_gets_junk() -> None:
    """Junk is drawn for each question; half of them is about half."""
    with FakeOpenAI(reader=ReadingModel(junk=0.5)) as server:
        replies = [text_of(complete(server, f"Day {n}.\n\n{CHOICE}")) for n in range(40)]
    assert 8 <= sum("next_state" not in text for text in replies) <= 32


@pytest.mark.parametrize(("temperature", "kinds"), [(0.0, 1), (1.0, 3)])
def test_a_choice_that_only_the_schema_offers_is_drawn(temperature: float, kinds: int) -> None:
    """Sampled, any of the values comes; at temperature 0 always the same; a seed repeats it."""
    schema = {"type": "object", "properties": {"next": {"enum": ["go on", "turn", "hand over"]}}}
    asked = [{"role": "user", "content": "What now?"}]
    found = [
        ReadingModel().reply(asked, schema, temperature=temperature, seed=seed % 20).text
        for seed in range(40)
    ]
    assert len({*found}) == kinds
    assert found[:20] == found[20:]


def test_it_restarts_after_so_many_questions() -> None:
    """The server cuts off the question and refuses others, then answers at the same address."""
    with FakeOllama(reader=ReadingModel(), restarts={2: 0.2}, latency=0.01) as server:
        ask(server, CHOICE)
        with pytest.raises(httpx.TransportError):
            ask(server, CHOICE)
        wait_until(lambda: is_there(server))
        reply = ask(server, CHOICE)
    assert json.loads(reply["message"]["content"]) == {"next_state": "replying"}
    assert server.loads == 2


def is_there(server: FakeOllama) -> bool:
    """Return whether somebody listens at the server's address."""
    try:
        return CLIENT.get(f"{server.host}/api/version").is_success
    except httpx.TransportError:
        return False


async def test_a_restart_loses_the_questions_under_way() -> None:
    """Whoever waits for an answer while the server restarts is cut off, not left to wait."""
    with FakeOllama(reader=ReadingModel(), latency=30) as server:
        async with httpx.AsyncClient(timeout=20, verify=False) as client:
            body = {"model": "llama3.2", "messages": [{"content": CHOICE}], "stream": False}
            waiting = asyncio.create_task(client.post(f"{server.host}/api/chat", json=body))
            await until(lambda: server.open_connections)
            server.restart()
            with pytest.raises(httpx.TransportError):
                await waiting


def test_a_server_that_does_not_run_cannot_restart() -> None:
    """A restart of a server that was not started is an error."""
    with pytest.raises(RuntimeError, match="not running"):
        FakeOllama().restart()


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        ({"junk": 1.5}, "junk must be between 0 and 1, got 1.5"),
        ({"option_mass": -1}, "option_mass must be between 0 and 1, got -1"),
        ({"window": 1}, "window must be 2 tokens or more, got 1"),
        ({"too_long": "drop"}, "too_long must be 'cut' or 'refuse', got 'drop'"),
    ],
)
def test_impossible_traits_are_refused(traits: Mapping[str, Any], message: str) -> None:
    """A share outside 0 to 1, or a window without room, is named."""
    with pytest.raises(FieldValueError) as raised:
        ReadingModel(**traits)
    assert str(raised.value) == message
