"""Who answers the questions of a run, and who writes its texts, as a command line says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from prism.cli._options import listed, option_of
from prism.errors import InputError
from prism.files import reading
from prism.llm import Model
from prism.llm._model_text import model_in_text
from prism.llm._settings import OF_DECISIONS, Server
from prism.runs import PolicyOptions, WriterOptions

if TYPE_CHECKING:
    from prism.runs._options import DeciderOptions

Given = Mapping[str, Any]


def who_answers(
    reasoner: str, policy: Path | None, model: Given, writer: Given
) -> tuple[DeciderOptions, WriterOptions | None]:
    """Return who decides and who writes; refuse options of a model if there is none.

    Args:
        reasoner: Who decides.
        policy: A policy file, if one was named.
        model: The options of a model that were given.
        writer: The options of a writer that were given.

    Raises:
        InputError: If an option was given that has no effect.
    """
    if writer and "writer" not in writer:
        raise InputError(f"{option_of(next(iter(writer)))} needs --writer MODEL")

    given = settings_from(model)
    decides = _decider(reasoner, policy, given)
    if "writer" in writer:
        return decides, _writer(writer, given, decides)
    if given and (decides is None or policy is not None):
        raise _lacks_server(next(iter(given)), given)

    return decides, None


def _decider(reasoner: str, policy: Path | None, given: dict[str, Any]) -> DeciderOptions:
    """Return who decides; None for the built-in policy."""
    if policy is not None:
        if reasoner != "policy":
            raise InputError(f"--policy already decides: leave out --reasoner {reasoner}")
        return PolicyOptions(policy)

    if reasoner != "policy":
        if "model" not in given:
            raise _lacks_model("--reasoner", reasoner)
        return model_options({**given, "server": reasoner})
    if "model" in given and len(_named(given["model"])) > 1:
        return model_options(given)
    return None


def _named(text: str) -> Given:
    """Return the parts of the text of a model; a kind of server may stand alone."""
    return {"server": text} if text in get_args(Server) else model_in_text(text)


def _writer(writer: Given, given: Given, decides: DeciderOptions) -> WriterOptions:
    """Return who writes: the deciding model, or another one."""
    text = writer["writer"]
    named = _named(text)
    if isinstance(decides, Model):
        server = named.get("server", decides.server)
        if "model" not in named and server != decides.server:
            raise InputError(
                f"--writer {server} and --reasoner {decides.server} are two kinds of servers: "
                f"name the model that writes, as in --writer {server}:NAME@HOST"
            )
        # a model without its own hosts uses those of the deciding model
        is_shared = "hosts" not in named and server == decides.server
        return _writes(named.get("model") if is_shared else text, writer)

    if "model" not in {**named, **given}:
        raise _lacks_model("--writer", named["server"])
    for name in (*OF_DECISIONS, *named.keys() & {"model"}):
        if name in given:
            raise InputError(
                f"{option_of(name)} needs --reasoner ollama or openai, for a model that decides"
            )
    if "model" in named:
        return _writes(Model.of(text, **given), writer)
    return _writes(model_options({**given, **named}), writer)


def _lacks_server(name: str, given: Given) -> InputError:
    """Return the error about an option of a model without a server."""
    if name == "model":
        # who gave only the kind of server has yet to name the model
        is_kind = "model" not in _named(given["model"])
        named = f"{given['model']}:MODEL" if is_kind else f"ollama:{given['model']}"
        return InputError(f"--model must say who serves it: --model {named}, or --writer {named}")

    others = "" if name in OF_DECISIONS else ", or --writer"
    return InputError(f"{option_of(name)} needs --reasoner ollama or openai{others}")


def _writes(model: str | Model | None, writer: Given) -> WriterOptions:
    own = {
        name.removeprefix("writer_"): value for name, value in writer.items() if name != "writer"
    }
    return WriterOptions(model, **settings_from(own))


def _lacks_model(name: str, server: str) -> InputError:
    shown = "'ollama list' shows them" if server == "ollama" else "the server lists them"
    return InputError(f"{name} {server} needs --model with the name of a model; {shown}")


def settings_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings that were given as options.

    Raises:
        InputError: If one names a file that cannot be read, or is not UTF-8.
    """
    found = dict(given)
    for name in given.keys() & {"prompt"}:
        with reading(given[name]):
            found[name] = given[name].read_text(encoding="utf-8")
    if "attributes" in given:
        found["attributes"] = listed(given["attributes"])

    return found


def model_options(given: Mapping[str, Any]) -> Model:
    """Return the options of a model.

    Args:
        given: Settings of a model by name, None if not given.

    Raises:
        InputError: If options do not fit.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    return Model.of(asked.pop("model"), **asked)


def writer_options(given: Mapping[str, Any]) -> Model | None:
    """Return the model that writes the texts of a run; refuse its options if there is none.

    Args:
        given: The options of a model that were given.

    Raises:
        InputError: If an option of a model was given without a model.
    """
    if "model" in given:
        return model_options(settings_from(given))
    if given:
        raise InputError(f"{option_of(next(iter(given)))} needs --model")

    return None
