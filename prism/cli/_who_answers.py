"""Who decides and who writes in a run, as options of a command line say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from prism.cli._options import model_option, model_options
from prism.cli._running import option_of
from prism.errors import InputError
from prism.runs import (
    DeciderOptions,
    ModelOptions,
    PolicyOptions,
    ReplayOptions,
    WriterOptions,
)
from prism.runs._config import recorded_writer
from prism.runs._options import ONLY_DECIDES
from prism.runs._settings import Server

PolicyFile = Annotated[
    Path | None,
    model_option(
        metavar="FILE",
        help="Decide by a policy that 'prism calibrate' has estimated, instead of a model.",
    ),
]


@dataclass(frozen=True, slots=True)
class WriterChoice:
    """What a command was told of who writes.

    Args:
        kind: What serves the model; None if nobody is to write.
        model: Another model than the one that decides.
        length: Most characters.
        language: Language of the texts.
    """

    kind: Server | None = None
    model: str | None = None
    length: int | None = None
    language: str | None = None

    def options(self, model: str | ModelOptions | None) -> WriterOptions:
        """Return the options of a writer that asks a model."""
        given: dict[str, Any] = {"max_length": self.length, "language": self.language}
        return WriterOptions(
            model, **{name: value for name, value in given.items() if value is not None}
        )

    def require_none(self) -> None:
        """Refuse options of a writer where there is none.

        Raises:
            InputError: At the first one that is given.
        """
        given = {"model": self.model, "length": self.length, "language": self.language}
        for name, value in given.items():
            if value is not None:
                raise InputError(f"--writer-{name} needs --writer ollama or openai")


def who_answers(
    reasoner: Literal["policy", "ollama", "openai"],
    replay: Path | None,
    policy: Path | None,
    models: Path | None,
    asked: Mapping[str, Any],
    writer: WriterChoice,
) -> tuple[DeciderOptions, WriterOptions | None]:
    """Return who decides and who writes; refuse options of a model where none is asked.

    Args:
        reasoner: Who decides.
        replay: An earlier run to take decisions and texts from, if one was named.
        policy: A policy file, if one was named.
        models: File of models, if one was named.
        asked: Options of a model, None where they were not given.
        writer: Who writes.

    Raises:
        InputError: If an option was given that applies to nothing.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    if writer.kind is None and replay is None:
        writer.require_none()
    if policy is not None:
        _refuse_beside_policy(reasoner, replay, models)
        return PolicyOptions(policy), _only_writes(given, writer)
    if replay is not None:
        if models is not None:
            given["models"] = models
        return _replayed(replay, given, writer)
    if models is None and reasoner == "policy":
        return None, _only_writes(given, writer)

    decides = _model(reasoner, models, given)
    if writer.kind is None:
        return decides, None
    if writer.kind != decides.server:
        raise InputError(
            f"--writer {writer.kind} and --reasoner {decides.server} are servers of two kinds: "
            "take one of them for both, which may have another --writer-model"
        )

    return decides, writer.options(writer.model)


def _model(
    reasoner: Literal["policy", "ollama", "openai"], models: Path | None, given: Mapping[str, Any]
) -> ModelOptions:
    if models is not None:
        server = None if reasoner == "policy" else reasoner
        return model_options(models, {**given, "server": server})
    if "model" not in given:
        raise _lacks_model("--reasoner", reasoner)

    assert reasoner != "policy"
    return ModelOptions(**given, server=reasoner)


def _refuse_beside_policy(reasoner: str, replay: Path | None, models: Path | None) -> None:
    others = {"--replay": replay, "--models": models}
    found = [option for option, value in others.items() if value is not None]
    if reasoner != "policy":
        found.append(f"--reasoner {reasoner}")
    if found:
        raise InputError(f"--policy decides: leave out {', '.join(found)}")


def _replayed(
    replay: Path, given: Mapping[str, Any], writer: WriterChoice
) -> tuple[DeciderOptions, WriterOptions | None]:
    if given:
        option = option_of(next(iter(given)))
        raise InputError(f"{option} asks no model: leave it out with --replay")
    if writer.model is not None:
        raise InputError("--writer-model asks no model: leave it out with --replay")

    told = writer != WriterChoice()

    return ReplayOptions(replay), writer.options(None) if told else recorded_writer(replay)


def _only_writes(given: Mapping[str, Any], writer: WriterChoice) -> WriterOptions | None:
    if writer.kind is None:
        if given:
            option = option_of(next(iter(given)))
            others = "" if next(iter(given)) in ONLY_DECIDES else ", or --writer"
            raise InputError(f"{option} needs --reasoner ollama or openai{others}")
        return None

    model = writer.model or given.get("model")
    if model is None:
        raise _lacks_model("--writer", writer.kind)

    for name in ONLY_DECIDES:
        if name in given:
            raise InputError(f"{option_of(name)} needs --reasoner ollama or openai: it decides")

    return writer.options(ModelOptions(**{**given, "model": model}, server=writer.kind))


def _lacks_model(option: str, server: str) -> InputError:
    shown = "'ollama list' shows" if server == "ollama" else "the server lists"
    return InputError(f"{option} {server} needs --model, the name of a model that {shown}")
