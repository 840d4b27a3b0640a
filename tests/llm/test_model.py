"""`Model`: a language model somewhere, said in one name, one text or one table."""

import copy
import pickle
from typing import Any

import ollama
import pytest

from prism.errors import InputError, ReasonerError
from prism.llm import Model
from prism.reasoner import Question, Reasoner
from prism.testing import FakeOllama

GPU1 = "ollama:llama3.2@gpu1"
HELLO = [{"role": "user", "content": "Say hello."}]


@pytest.mark.parametrize(
    ("text", "model", "server", "hosts"),
    [
        ("llama3.2", "llama3.2", "ollama", None),
        ("ollama:@gpu1", "@gpu1", "ollama", None),
        ("ollama:llama3.2:3b@gpu1", "llama3.2:3b", "ollama", ("gpu1",)),
        ("OpenAI:gpt-oss@http://h:8000", "gpt-oss", "openai", ("http://h:8000",)),
        ("llama3.2@gpu1, gpu2:11500", "llama3.2", "ollama", ("gpu1", "gpu2:11500")),
        ("openai:@cf/meta/llama@https://h/v1", "@cf/meta/llama", "openai", ("https://h/v1",)),
        ("qwen3@q4_k_m", "qwen3@q4_k_m", "ollama", None),
        ("openai:qwen3@UD-Q4_K_XL@http://h:1", "qwen3@UD-Q4_K_XL", "openai", ("http://h:1",)),
        ("localhost:5000/team/llama:8b", "localhost:5000/team/llama:8b", "ollama", None),
        ("hf.co/team/llama-GGUF:Q4_K_M", "hf.co/team/llama-GGUF:Q4_K_M", "ollama", None),
    ],
)
def test_a_text_says_model_server_and_hosts(
    text: str, model: str, server: Any, hosts: tuple[str, ...] | None
) -> None:
    """A text is read as the same model that its parts describe, tags and registries included."""
    assert Model.of(text) == Model(model, hosts, server=server)


def test_a_model_shows_what_was_said_of_it() -> None:
    """Its text in a notebook has no settings that nobody has given."""
    assert repr(Model("tiny", price_in=1)) == "Model('tiny', server='ollama', price_in=1.0)"
    client = Model("tiny", client=Agent())
    assert repr(client) == "Model('tiny', client='tests.llm.test_model.Agent')"


async def test_a_model_is_asked_directly() -> None:
    """Its servers take conversations, and whatever they need is made with the first question."""
    with FakeOllama(write=lambda *_: "Hello!") as server:
        async with Model("llama3.2", server.host) as model:
            assert (await model.as_client().chat(HELLO)).text == "Hello!"
            assert await model.as_client().warm_up() == {server.host: None}
            assert [check.ok async for check in model.diagnose()][-1]


def test_a_copy_makes_connections_of_its_own() -> None:
    """A model that was asked is copied and sent to processes as one that was not."""
    model = Model("small", "gpu1")
    pool = model.as_client()
    for same in (copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert same == model
        assert same.as_client() is not pool is model.as_client()


def test_prices_are_for_a_million_tokens() -> None:
    """Money is known where a price is; a price that is not given is none."""
    assert Model("a", price_in=2, price_out=8).price_of(500_000, 250_000) == 3.0
    assert Model("a", price_in=2).price_of(500_000, 250_000) == 1.0
    assert Model("a").price_of(500_000, 250_000) is None


class Agent:
    """An agent of another library."""

    async def run(self, prompt: str) -> str:
        """Answer."""
        return '{"next_state": "resting"}'


async def test_a_client_of_another_library_is_a_model() -> None:
    """It is asked by a reasoner as it is, and by the name that was given with it."""
    question = Question("Ann", "idle", "wakes", ("scrolling", "resting"))
    (decided,) = await Reasoner(Model.of(Agent())).decide_many([question])
    assert decided.chosen == "resting"

    with FakeOllama() as server:
        client = ollama.AsyncClient(server.host)
        model = Model("llama3.2", client=client)
        (decided,) = await Reasoner(model).decide_many([question])
        await client.close()
    assert decided.source == "model"
    kept = {"reasoner": "client", "client": "ollama.AsyncClient", "model": "llama3.2"}
    assert model.to_config() == kept


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Model(client=ollama.AsyncClient()), "model.*is needed by ollama.AsyncClient"),
        (lambda: Model.of(ollama.AsyncClient(), model="a", window=99), "window.*has no effect"),
        (lambda: Model.of(ollama.AsyncClient(), model="a", hosts="b"), "hosts.*has no effect"),
        (lambda: Model.of(7), "int has none"),
        (lambda: Model(), "must be the name of a model"),
        (lambda: Model("a", host="gpu1"), "host.*is no setting of a model; did you mean 'hosts'"),
        (lambda: Model("a", zeal=1), "zeal.*no setting of a model: known are .*model"),
        # a bare reasoner would ignore them
        (lambda: Reasoner(Model("a", mode="chat")), "mode.*is for a run"),
        (lambda: Model.of("openai:a@h", key="MY_KEY").as_client(), "MY_KEY, .*: export MY_KEY="),
        (lambda: Model.of(GPU1, server="openai"), f"server.*contradicts {GPU1!r}, the text"),
        (lambda: Model.of("ollama:"), "must name a model"),
        (lambda: Model.of("openai:gpt-oss"), "must name an OpenAI-compatible server"),
        (lambda: Model.of("http://127.0.0.1:11434"), "begins with an address"),
        (lambda: Model.of("llama3.2@a,,b"), "has no host"),
        (lambda: Model.of("llama3.2@ftp://h"), "names a host that is not an address"),
    ],
)
def test_what_cannot_be_asked_is_refused(make: Any, problem: str) -> None:
    """A text that names none, a client that can do less, and what a run says, in one line."""
    with pytest.raises((InputError, ReasonerError), match=problem) as caught:
        make()
    assert "\n" not in str(caught.value)


# Settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": float("nan")}, "temperature.*finite"),
        ({"concurrency": True}, "concurrency.*valid integer"),
        ({"timeout": 0}, "timeout.*equal to 0.01"),
        ({"mode": "loud"}, "mode.*should be 'auto' or 'chat'"),
        ({"hosts": 1}, "hosts.*a list of texts"),
        ({"hosts": (1,)}, "hosts.*a text"),
        ({"think": "deeply"}, "think.*one of false, true, low"),
        ({"key": "sk-123"}, "key.*must be the name of the environment variable"),
        ({"stop_at_fallbacks": 0}, "stop_at_fallbacks.*greater than 0"),
        ({"max_calls": 0}, "max_calls.*equal to 1"),
    ],
)
def test_invalid_values_are_refused(given: dict[str, Any], message: str) -> None:
    """Values that a setting's declaration does not allow are refused when the model is made."""
    with pytest.raises(InputError, match=message) as caught:
        Model("tiny", **given)
    # it may be the key itself
    assert "sk-123" not in str(caught.value)


@pytest.mark.parametrize("value", [-1, 300, 0.5, "0", "5m", "-1m", "1h30m", "1.5h"])
async def test_ollamas_durations_are_taken_as_they_are(
    value: float | str, server: FakeOllama
) -> None:
    """Numbers are seconds, and texts have units, as Ollama itself takes them with each request."""
    model = Model("tiny", server.host, keep_alive=value)
    await model.as_client().chat(HELLO)
    assert server.questions[0].body["keep_alive"] == value


@pytest.mark.parametrize(
    "value", ["", "300", "-1", "5 m", "\u0665m", "soon", "1d", True, float("inf"), 1e12]
)
def test_what_ollama_would_refuse_is_refused_when_the_model_is_made(value: Any) -> None:
    """A duration that Ollama cannot read is named before a run begins."""
    with pytest.raises(InputError, match=r"keep_alive.*a number of seconds, or a text with units"):
        Model("tiny", keep_alive=value)
