"""`Model`: a language model, independent of its server and of its callers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from prism.errors import InputError, ReasonerError
from prism.llm.addresses import DEFAULT_HOST, Kind, model_in_text
from prism.llm.settings import (
    OF_RUNS,
    REQUESTS,
    Hosts,
    Settings,
    settings_in,
    settings_of,
    to_plain,
)
from prism.reasoner.requests import Prices, price_of
from prism.statechart.names import did_you_mean

if TYPE_CHECKING:
    from prism.llm._doctor import Check
    from prism.llm.pool import ModelPool

_OF_A_SERVER = (
    "hosts", "key", "think", "temperature", "load_timeout", "keep_alive",
    "window", "reply_tokens",
)  # fmt: skip
"""Settings without a meaning for the client of another library, which has its own."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Model(Settings):
    """A language model: its name, its servers, and how it is asked.

    ::

        Model("llama3.2")
        Model("llama3.2", hosts=["http://gpu1:11434", "http://gpu2:11434"], patience=30)
        Model("gpt-oss", server="openai", hosts=["http://127.0.0.1:8000"], key="VLLM_KEY")
        Model.of("ollama:llama3.2@gpu1,gpu2")
        Model("llama3.2", client=ollama.AsyncClient())

    Everything that takes a model accepts one of these, a text for `of`, or a client of another
    library: `Reasoner` and `Writer`, simulations, worlds, workflows and thinking
    agents. To ask it directly, call ``await model.as_client().chat(messages)``.

    Every question goes to the host with the fewest open questions. After a temporary failure (a
    busy server, a broken connection, a time-out) it is asked again, on another host if there is
    one. A host that fails several times in a row gets no questions for a while, and then a single
    one as a probe. Connections are made with the first question; use a model in one event loop at a
    time.

    None stands for the default. Settings on decisions and spending apply to runs;
    a `Reasoner` or `Writer` outside a run has its own arguments for them.

    Args:
        model: Model to ask, as the server lists it. A text, as on a command line, may also name
            the kind of server and its hosts, separated by commas: ollama:llama3.2@127.0.0.1, or
            openai:llama3.2@http://gpu1:8000.
        hosts: Server, or several (repeat the option); by default Ollama's http://127.0.0.1:11434.
        server: Kind of server: ollama (the default), or openai for any server with OpenAI's API
            (vLLM, llama.cpp, LM Studio), which needs a host.
        client: The client of another library to ask instead: ``ollama.AsyncClient``,
            ``openai.AsyncOpenAI``, a client or an agent of agent-framework, or anything with an
            async ``chat``, ``get_response`` or ``run``. A kept run records its type, and needs the
            client again to be resumed.
        key: Environment variable that holds the server's key. For servers with OpenAI's API,
            OPENAI_API_KEY by default; if that is not set, no key is sent. A name and password
            are given as in a header: Basic, a space, and both in Base64.
        price_in: Price of a million tokens that the model reads, in any currency.
        price_out: Price of a million tokens that the model writes, thoughts included.
        concurrency: Number of concurrent questions for each server; 4 by default.
        timeout: Seconds to wait for one reply; 60 by default.
        attempts: Maximum number of requests for one question, if failures are temporary; 3 by
            default, 1 for no retries.
        patience: Seconds to wait for a failing server before decisions fall back, 0 not to wait;
            60 by default in a run, and 0 elsewhere.
        load_timeout: Seconds to wait for the model to load; 600 by default.
        keep_alive: How long Ollama keeps the model loaded, as Ollama takes it: seconds, or a text
            such as 5m; -1 for ever. 30m by default.
        temperature: Sampling temperature of the model. At 0 (the default) the likeliest token is
            taken, and equal questions are asked once in a run; at any other, each agent is asked
            with a seed of its own.
        seed: Seed for the model's sampling; by default that of the run, and 0 elsewhere.
        think: Whether the model may think before it answers; some models accept only low, medium
            or high. By default, the server decides.
        window: Maximum tokens of prompt and reply together; a prompt that does not fit is not
            sent. Ollama is told (num_ctx); other servers have their own window. By default, the
            server's.
        reply_tokens: Maximum tokens of a reply, including thoughts; by default a quarter of the
            window, or without it a number for each kind of question.
        mode: chat asks for the name of an option, and auto for probabilities if server and model
            give them.
        prompt: Template of the prompt, with {fields} such as {name}, {agent.age} and {situation}.
        attributes: Attributes of the agents to include in the prompt, separated by commas.
        remember: Number of things an agent remembers when it decides; none by default.
        rotations: Order of the options in the prompt, since models prefer certain letters and
            places: none for that of the chart, drawn (the default) for a rotation of it that is
            drawn for each decision, or all to ask in every rotation and average.
        stop_at_fallbacks: Stop the run, so that it can be resumed, if this share (0 to 1) of the
            last 200 decisions fell back, or never. 0.5 by default, not counting fallbacks after
            the budget was spent.
        max_calls: Maximum number of requests in the run.
        max_tokens: Maximum number of tokens in the run.
        deadline: Seconds after which the run asks no more questions.

    Raises:
        InputError: If a setting is invalid, or the address of a server is missing.
        ReasonerError: If a client cannot be asked.
    """

    model: str = field(default="", kw_only=False)
    hosts: Hosts | None = field(default=None, kw_only=False)
    server: Kind = "ollama"
    client: Any = None

    def __new__(cls, *_values: Any, **settings: Any) -> Self:
        """Refuse names that are no settings.

        Raises:
            InputError: If there is one; the message has the names of all.
        """
        names = (*settings_of(), "client")
        for name in (each for each in settings if each not in names):
            problem = f"is no setting of a model{did_you_mean(name, names)}"
            raise InputError(problem, field=name)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuse invalid values, and those that do not fit together."""
        Settings.__post_init__(self)
        if self.client is not None:
            self._check_client()
        elif not (self.model or "").strip():
            raise InputError("must be the name of a model, as the server lists it", field="model")
        elif self.model.startswith(("http://", "https://")):
            # it may contain a password
            problem = "is an address: give the name first, Model('llama3.2', 'http://gpu1:11434')"
            raise InputError(problem, field="model")

        if self.server == "openai" and not self.hosts and self.client is None:
            problem = "must name an OpenAI-compatible server: NAME@http://127.0.0.1:8080"
            raise InputError(problem, field="hosts")

    @classmethod
    def of(cls, value: Any, **settings: Any) -> Self:
        """Return the model for a text or a client; a model is returned as it is.

        Args:
            value: ``[SERVER:]NAME[@HOST[,HOST...]]``, such as ``"llama3.2"``,
                ``"ollama:llama3.2@127.0.0.1"`` or ``"openai:llama3.2@http://127.0.0.1:8000"``; the
                client of another library; or a `Model`.
            settings: Further settings.

        Raises:
            InputError: If it is not one of these, or repeats one of the ``settings``.
            ReasonerError: If a client cannot be asked.
        """
        settings = {name: value for name, value in settings.items() if value is not None}
        if isinstance(value, cls):
            return replace(value, **settings)
        if not isinstance(value, str):
            return cls(client=value, **settings)

        named = model_in_text(value)
        for name in ("model", "server", "hosts"):
            if name in named and settings.get(name, named[name]) != named[name]:
                problem = f"contradicts {value!r}, the text of the model: leave one of them out"
                raise InputError(problem, field=name)

        return cls(**{**settings, **named})

    def to_config(self) -> dict[str, Any]:
        """Return the settings that are not None as plain JSON data.

        For a client, its type and the name of its model are kept.
        """
        config = {"reasoner": self.server, **to_plain(self)}
        config.pop("server", None)
        if self.client is not None:
            config |= {"reasoner": "client", "client": type_of(self.client)}

        return config

    def price_of(self, read: int, written: int) -> float | None:
        """Return the cost of tokens, in the currency of the prices; None if the prices are unknown.

        Args:
            read: Tokens that the model reads.
            written: Tokens that it writes.
        """
        return price_of(self.prices, read, written)

    @property
    def prices(self) -> Prices:
        """The prices of a million tokens that it reads and writes; None for an unknown one."""
        return self.price_in, self.price_out

    # asked directly, and by everything that takes a model

    def as_client(self) -> Any:
        """Return the client for asking outside of a run: the servers, or another library's client.

        Every call returns the same client, and does not contact a server. The servers of a model
        have ``chat`` and ``warm_up``.

        Raises:
            InputError: If a setting works only in a run.
            FieldValueError: If its key cannot be sent in a header.
        """
        for name in OF_RUNS:
            if getattr(self, name) is not None:
                problem = "is for a run: elsewhere, see the arguments of Reasoner and Writer"
                raise InputError(problem, field=name)
        if self.client is not None:
            return self.client

        return self._pool

    @cached_property
    def _pool(self) -> ModelPool:
        return pool_of(self)

    async def diagnose(self) -> AsyncGenerator[Check, None]:
        """Check the first host and its model, step by step, until one fails.

        Yields:
            The steps in order, each as soon as it has ended; only the last can fail.
        """
        from prism.llm._doctor import diagnose

        if self.client is not None:
            problem = f"is {type_of(self.client)}, which is asked by Reasoner and Writer alone"
            raise InputError(problem, field="client")

        async for check in diagnose(self.as_client()):
            yield check

    async def close(self) -> None:
        """Close the connections; the next question makes new ones."""
        if "_pool" in self.__dict__:
            await self._pool.close()

    async def __aenter__(self) -> Self:
        """Return the model itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    def _check_client(self) -> None:
        """Refuse a client that cannot be asked, and settings without a meaning for it.

        Raises:
            InputError: If there is such a setting, or the client needs the name of a model.
            ReasonerError: If it has no method that can be asked.
        """
        if isinstance(self.client, LostClient):
            return
        for name in _OF_A_SERVER:
            if getattr(self, name) is not None:
                problem = f"has no effect on a client, here {type_of(self.client)}: set it there"
                raise InputError(problem, field=name)

        # the code that talks to clients is loaded only if there is one
        from prism.reasoner.clients import check_client, check_model

        check_client(self.client)
        if not self.model:
            named = getattr(self.client, "model", None)
            object.__setattr__(self, "model", named if isinstance(named, str) else "")
        try:
            check_model(self.client, self.model or None)
        except ReasonerError:
            problem = f"is needed by {type_of(self.client)}: Model('llama3.2', client=client)"
            raise InputError(problem, field="model") from None

    def __repr__(self) -> str:
        """Show the given settings."""
        settings = {name: value for name, value in settings_in(self).items() if name != "model"}
        if self.client is not None:
            settings = {**settings, "client": type_of(self.client)}
            del settings["server"]

        listed = "".join(f", {name}={value!r}" for name, value in settings.items())
        return f"{type(self).__name__}({self.model!r}{listed})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy, which makes its own connections."""
        return {name: value for name, value in self.__dict__.items() if name != "_pool"}


@dataclass(frozen=True)
class LostClient:
    """A placeholder for the client of a kept run, which no file can hold.

    Args:
        kind: Its type.
    """

    kind: str

    async def chat(self, messages: Any, *, logprobs: Any = None, **options: Any) -> Any:  # noqa: ARG002
        """Refuse to be asked.

        Raises:
            InputError: Always.
        """
        raise self.error()

    def error(self) -> InputError:
        """Return the error for a run whose client was not given."""
        return InputError(
            f"the run asks a client of another library, {self.kind}, which cannot be saved: pass "
            "it again, as in prism.resume(folder, model=client)"
        )


def type_of(client: Any) -> str:
    """Return the type of a client as users import it, such as ``ollama.AsyncClient``."""
    if isinstance(client, LostClient):
        return client.kind

    kind = type(client)
    public = [part for part in kind.__module__.split(".") if not part.startswith("_")]
    return ".".join((*public, kind.__qualname__.rpartition(".")[2]))


def pool_of(model: Model, *, seed: int = 0, patience: float = 0.0) -> ModelPool:
    """Return the servers of a model, for asking them.

    Args:
        model: The model.
        seed: Seed of the sampling, if the model has none of its own.
        patience: Seconds to wait for a failing server, if the model sets none.

    Raises:
        FieldValueError: If the key cannot be sent in a header.
        InputError: If the variable that holds the key is not set.
    """
    # the code that talks to servers is loaded only if one is asked
    from prism.llm.pool import ModelPool

    values = settings_in(model)
    requests: Any = {name: values[name] for name in REQUESTS if name in values}

    settings = {"patience": patience, "seed": seed, **requests}
    return ModelPool(model.hosts or (DEFAULT_HOST,), model.model, model.server, **settings)
