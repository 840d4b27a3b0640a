"""One model server, without retries or a queue."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import NoneType
from typing import Any, TypeVar

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    DeclinedError,
    FieldValueError,
    InputError,
    LLMError,
    ModelMissingError,
    PromptTooLongError,
    TimedOutError,
    UselessReplyError,
)
from prism.llm._addresses import shown_address
from prism.llm._bad_replies import error_told, translate, unsendable
from prism.llm._dialect import LOOK_SECONDS, OTHER_FORM, Dialect
from prism.llm._letters import LetteredChoice
from prism.llm._settings import RequestSettings
from prism.llm._window import Prompt, Window
from prism.llm._wire import ReplyLimits, Wire, is_key
from prism.reasoner._faults import (
    is_permanent_refusal,
    is_refusal,
    is_retryable,
    lacks_decisions,
    lacks_path,
    refuses_length,
)
from prism.reasoner._model_client import (
    Chat,
    ChatReply,
    Choices,
    DecisionReply,
)
from prism.reasoner._slots import LOGGER
from prism.reasoner._slots import Host as BaseHost
from prism.reasoner._spending import Cost, choice_in, first

_GREETING = [{"role": "user", "content": "Say hello."}]

ResultT = TypeVar("ResultT")


class Host(BaseHost):
    """A server, its health, and its dialect.

    Args:
        address: Address of the server, such as ``http://127.0.0.1:11434``.
        model: Name of the model, as the server lists it.
        settings: The settings for requests.
        dialect: Its dialect.

    Raises:
        FieldValueError: If the key in the environment cannot be sent in a header.

    Attributes:
        settings: The settings for requests.
        dialect: Its dialect.
        window: The window of its model.
    """

    def __init__(
        self,
        address: str,
        model: str,
        settings: RequestSettings,
        dialect: Dialect,
    ) -> None:
        super().__init__(
            shown_address(address), model, settings["concurrency"], settings["patience"] or 0.0
        )
        self.settings: RequestSettings = settings
        self.dialect: Dialect = dialect
        self.window: Window = Window(
            settings["window"], settings["reply_tokens"], self._reported_window
        )
        base = shown_address(dialect.full_address(address))
        limits = ReplyLimits(settings["max_reply_bytes"], settings["timeout"])
        self._wire = Wire(address, base, _key(settings["key"], dialect.key_variable), limits)
        self._dropped: list[str] = []
        self._warned: set[str] = set()

    @property
    def omits(self) -> Sequence[str]:
        """The parts that requests leave out because the server or its model refused them."""
        return [part for part in self._dropped if part != OTHER_FORM]

    # Questions

    async def chat(self, chat: Chat, cost: Cost) -> ChatReply:
        """Send a conversation, sampled with the seed plus its variation.

        Raises:
            PromptTooLongError: If it does not fit into the window, or the server cut it.
        """
        said = self._answered(await self._complete(chat, cost))
        if not said.text:
            what = "thoughts, and no reply" if said.has_thoughts else "an empty reply"
            raise self._bad(f"gave {what}{cost.cut_short}", UselessReplyError)

        return replace(said, model=self.model, host=self.address)

    async def systemone(self, asked: Choices, cost: Cost) -> DecisionReply:
        """Ask choice questions about one state, and remember whether the host supports them.

        Raises:
            DecisionsUnsupportedError: If it does not support them.
        """
        if self.dialect.decision is not None:
            return await self._decide(self.dialect.decision, asked, cost)

        answers = {
            name: await self._choose(asked, question, cost)
            for name, question in asked.questions.items()
        }
        return DecisionReply(answers, self.model, self.address)

    async def _decide(self, path: str, asked: Choices, cost: Cost) -> DecisionReply:
        """Ask a decision model choice questions."""
        body = {
            "model": self.model,
            "state": asked.state,
            "questions": asked.questions,
            "keep_alive": self.settings["keep_alive"],
        }
        try:
            answers = await self._ask(path, body, _read_answers, cost)
        except LLMError as error:
            if not lacks_decisions(error):
                raise
            raise self._takes_none(f"takes no decision questions ({error})") from error.__cause__

        self.known_to_decide = True
        return DecisionReply(answers, self.model, self.address)

    async def _choose(
        self, asked: Choices, question: Mapping[str, Any], cost: Cost
    ) -> Mapping[str, Any]:
        """Ask one choice question as a conversation whose options have letters."""
        try:
            choice = LetteredChoice.of(asked.state, question)
        except ValueError as error:
            raise self._bad(f"is not asked: {error}") from error

        lacks = "gives no log-probabilities, which decision questions need"
        if self.known_to_decide is False:
            raise self._takes_none(lacks)

        messages = [{"role": "user", "content": choice.prompt}]
        chat = Chat(messages, choice.schema, asked.variation, chances=True)
        said = self._answered(await self._complete(chat, cost))
        # a server that has given some before may be one of several, of which others give none
        if not said.tokens and (not self.known_to_decide or "logprobs" in self._dropped):
            raise self._takes_none(lacks)

        self.known_to_decide = True
        try:
            answer = choice.read(said)
        except ValueError as error:
            what = f"does not answer with one of the options: {error}{cost.cut_short}"
            raise self._bad(what, UselessReplyError) from error

        mass = answer["option_mass"]
        if mass is None:
            self._warn_once("bare", "named its choice without log-probabilities, so it has none")
        elif answer["probabilities"] is None:
            self._warn_once(
                "mass",
                f"gave all options together a probability of {mass:.2g}: below "
                "a half, the choice is used without probabilities; mode chat does not need them",
            )

        return answer

    def _answered(self, said: ChatReply) -> ChatReply:
        """Return a reply, unless it says itself that it is none.

        Raises:
            DeclinedError: If the model declined to answer, or a filter withheld the answer.
        """
        if said.declined:
            raise self._bad(said.declined, DeclinedError)
        return said

    def _takes_none(self, why: str) -> LLMError:
        self.known_to_decide = False
        return self._bad(why, DecisionsUnsupportedError)

    async def _complete(self, chat: Chat, cost: Cost) -> ChatReply:
        """Send a conversation that fits into the window, and check that all of it was read.

        Raises:
            PromptTooLongError: If it does not fit, or the server has cut it.
        """
        for message in chat.messages:
            if not isinstance(content := message.get("content"), (str, list, NoneType)):
                why = f"its content must be text, got {str(content)[:40]}"
                raise unsendable(why, host=self.address, model=self.model)

        prompt = Prompt(chat.messages)
        if (lacking := self.window.lacking(prompt)) is not None:
            raise self._too_long(f"is not asked: {lacking}")

        try:
            said = await self._complete_as_taken(chat, cost)
        except LLMError as error:
            if refuses_length(error):
                await self.window.look_once()
                what = f"refuses the prompt as too long: {error}"
                raise self._too_long(what) from error.__cause__
            raise

        if (cut := await self.window.what_was_cut(prompt, said.input_tokens)) is not None:
            raise self._too_long(cut)
        return said

    async def _complete_as_taken(
        self, chat: Chat, cost: Cost, seconds: float | None = None
    ) -> ChatReply:
        """Send a conversation, and again without each part that the server refuses by name."""
        while True:
            body = self.dialect.body(self.settings, chat, self._dropped)
            try:
                return await self._converse(body, chat, cost, seconds)
            except LLMError as error:
                if (named := self._part_refused(error, body)) is None:
                    raise
                self._drop(named, error)
                if named == "logprobs":
                    return ChatReply("")
                cost.allowance.admitted()

    async def _converse(
        self, body: Mapping[str, Any], chat: Chat, cost: Cost, seconds: float | None
    ) -> ChatReply:
        """Send a request of a conversation."""
        dialect = self.dialect
        whole = {"model": self.model, **body}
        return await self._ask(
            dialect.chat, whole, lambda reply: dialect.read(reply, chat.schema), cost, seconds
        )

    def _part_refused(self, error: LLMError, body: Mapping[str, Any]) -> str | None:
        """Return the part of a request that a refusal names, if it may be left out."""
        if not is_refusal(error) or refuses_length(error):
            return None
        return self.dialect.refused(str(error), body, self.settings)

    def _drop(self, part: str, error: LLMError) -> None:
        """Leave a part out from now on, and warn."""
        # several requests may have been refused at the same time
        if part in self._dropped:
            return

        self._dropped.append(part)
        if part != OTHER_FORM:
            told = "%s at %s refuses %s, so it is asked without: %s"
            LOGGER.warning(told, self.model, self.address, part, error)

    # The window

    async def _reported_window(self) -> int | None:
        found: int | None = None
        for path, read in self.dialect.windows:
            try:
                told, is_final = await self._look(path, partial(read, model=self.model))
            except LLMError:
                if found is None:
                    raise
                break
            found = told or found
            if is_final:
                break

        return found

    def _too_long(self, what: str) -> LLMError:
        """Return the error for a prompt that is too long, and warn about the first one."""
        self._warn_once("window", f"{what}. {self.dialect.advice.window}")
        return self._bad(what, PromptTooLongError)

    # Looks

    async def decides(self) -> bool | None:
        """Return True if server and model support decision questions.

        Returns:
            None if only a decision question can tell, since some servers have no path to ask.

        Raises:
            LLMError: If the server cannot be asked now, or does not have the model yet.
        """
        path = self.dialect.show
        if self.known_to_decide is None and path is not None:
            body = {"model": self.model}
            try:
                self.known_to_decide = await self._look(path, _read_capabilities, body)
            except LLMError as error:
                if lacks_path(error):
                    return None
                if isinstance(error, ModelMissingError) or not is_permanent_refusal(error):
                    raise
                self.known_to_decide = False

        return self.known_to_decide

    async def kind(self) -> str:
        """Return the kind of server in a few words.

        Raises:
            LLMError: If it does not answer.
        """
        if self.dialect.version is not None:
            return f"Ollama {await self._look(self.dialect.version, _read_version)}"

        try:
            await self.models()
        except TimedOutError:
            # some gateways collect their list from many servers, but know other paths at once
            await self._answer_from(self.dialect.windows[-1][0])
        return "an OpenAI-compatible server"

    async def _answer_from(self, path: str) -> None:
        """Wait for an answer of any kind, such as that the path is unknown.

        Raises:
            LLMError: If none comes.
        """
        try:
            await self._look(path, lambda _reply: None)
        except LLMError as error:
            if is_retryable(error):
                raise

    async def models(self) -> list[str]:
        """List the models that the server has."""
        key, names = self.dialect.listed
        return await self._look(self.dialect.listing, partial(_read_models, key=key, names=names))

    async def load(self, cost: Cost | None = None) -> str:
        """Load the model, so that the first question does not wait for it, and describe the result.

        Args:
            cost: Collects the cost, if loading takes a conversation.
        """
        settings, path = self.settings, self.dialect.load
        seconds = settings["load_timeout"]
        if path is None:
            chat = Chat(_GREETING, most_tokens=1)
            await self._complete_as_taken(chat, cost or Cost(), seconds)
            came = "answers, so the model is loaded"
        else:
            body: dict[str, Any] = {"model": self.model, "prompt": "", "stream": False}
            body["keep_alive"] = settings["keep_alive"]
            # a decision question cannot set a window, and would load the model again
            if settings["window"] is not None and not self.known_to_decide:
                body["options"] = {"num_ctx": settings["window"]}
            await self._ask(path, body, _read_loaded, Cost(), seconds)
            came = f"loaded, and kept for {settings['keep_alive']}"

        self.has_answered = True
        await self.window.look_once()
        return came

    async def close(self) -> None:
        """Close the connections, or let the last open question do so."""
        await self._wire.close()

    # One request

    async def _look(
        self, path: str, read: Callable[[Any], ResultT], body: Mapping[str, Any] | None = None
    ) -> ResultT:
        """Ask for what the server knows without a model."""
        seconds = min(self.settings["timeout"], LOOK_SECONDS)
        return await self._ask(path, body, read, Cost(), seconds)

    async def _ask(
        self,
        path: str,
        body: Mapping[str, Any] | None,
        read: Callable[[Any], ResultT],
        cost: Cost,
        seconds: float | None = None,
    ) -> ResultT:
        """Send one request, and read its reply."""
        settings, wire = self.settings, self._wire
        limit = settings["timeout"] if seconds is None else seconds
        # a separate one, since others may add to the same one concurrently
        own = cost.another()
        own.model, own.host = self.model, self.address
        try:
            reply = await wire.send(path, body, own, limit)
            if isinstance(reply, dict):
                own.note_reply(reply, self.dialect.counts)
                if error_said := _error_in(reply):
                    raise error_told(error_said, wire.shown)
            return read(reply)
        except Exception as error:
            failure = translate(
                error,
                self.dialect.advice,
                host=self.address,
                model=self.model,
                seconds=limit,
                sent=own.has_begun,
            )
            if own.trail is not None:
                own.request_failed(wire.described(failure))
            raise failure from error
        finally:
            own.request_ended()
            cost.add(own)

    def _bad(self, what: str, kind: type[LLMError] = BadReplyError) -> LLMError:
        return kind(f"{self.model} at {self.address} {what}", host=self.address)

    def _warn_once(self, subject: str, what: str) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            LOGGER.warning("%s at %s %s", self.model, self.address, what)


def _key(named: str | None, usual: str) -> str:
    """Return the key from the environment, empty if there is none.

    Args:
        named: Name of the variable that must hold it, if the user named one.
        usual: Name of the default variable, which may hold it.

    Raises:
        InputError: If the named variable is not set.
        FieldValueError: If the key cannot be sent in a header; it is not shown.
    """
    variable = named or usual
    key = os.environ.get(variable, "").strip()
    if named and not key:
        problem = f"names the environment variable {named}, which is not set: export {named}=..."
        raise InputError(problem, field="key")
    if not is_key(key):
        raise FieldValueError(
            f"{variable} must be a key of printable ASCII characters without spaces"
        )

    return key


def _error_in(reply: Mapping[str, Any]) -> Any:
    """Return the error in a reply; beside an answer it says nothing, unless it is the choice's."""
    choice = choice_in(reply)
    if choice is not reply and (error := first(choice, "error")):
        return error

    is_answer = "answers" in reply or isinstance(first(choice, "message"), Mapping)
    return None if is_answer else reply.get("error")


def _read_answers(reply: Any) -> dict[str, Mapping[str, Any]]:
    answers = reply.get("answers") if isinstance(reply, dict) else None
    if not isinstance(answers, dict) or not answers:
        raise ValueError("it has no answers")

    for name, answer in answers.items():
        has_choice = isinstance(answer, dict) and isinstance(answer.get("choice"), str)
        if not (has_choice and isinstance(answer.get("probabilities"), dict)):
            raise ValueError(f"answers.{name}: it has no choice with probabilities")

    return answers


def _read_capabilities(reply: Any) -> bool:
    if not isinstance(reply, dict):
        raise ValueError("it does not describe a model")
    return "decision" in (reply.get("capabilities") or ())


def _read_models(reply: Any, key: str, names: Sequence[str]) -> list[str]:
    """Return the names in a list of models, which may be bare (Together) or hold names only."""
    listed = reply.get(key) if isinstance(reply, dict) else reply
    if not isinstance(listed, list):
        raise ValueError("it has no list of models")

    named = (item if isinstance(item, str) else first(item, *names) for item in listed)
    return [str(name) for name in named if name is not None]


def _read_version(reply: Any) -> str:
    if not isinstance(reply, dict) or "version" not in reply:
        raise ValueError("it has no version")
    return str(reply["version"])


def _read_loaded(reply: Any) -> None:
    if not isinstance(reply, dict) or not reply.get("done"):
        raise ValueError("it does not say that the model is loaded")
