"""The options of reasoners and writers: a model, an earlier run, or a policy file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from prism.errors import FieldValueError, InputError
from prism.files._durable import is_stream
from prism.llm import Model
from prism.llm._model import LostClient, type_of
from prism.llm._model_text import model_in_text
from prism.runlog._reader import locate_log
from prism.statechart import Wording

ALL_OTHERS = "all others"
"""The title of agents that use the run's own model."""

Later = Mapping[str, str]
"""Models to which a run switches later, as texts by their names in the log."""

NO_LATER: Later = MappingProxyType({})

Then = Literal["model", "policy"]
"""What decides from where a run diverges from the one that it repeats."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The decisions are taken from the journal of an earlier run.

    Args:
        run: The folder of the earlier run, or its log.
        model: The model of that run, if the new one may differ from it; None for the built-in
            policy.
        then: What decides from the first question that differs: ``model`` for the model of that
            run, or the built-in ``policy``. None makes such a question an error, which is the
            default without a model.
        is_whole: Whether nothing else differs either, so that the logs must have the same lines.
        until: The round from whose beginning no more answers are taken, since another model gives
            them; None to take them up to the first question that differs.
    """

    run: Path
    model: Model | PolicyOptions | None = None
    then: Then | None = None
    is_whole: bool = False
    until: int | None = None

    def __post_init__(self) -> None:
        """Default to asking the model, if one was given."""
        if self.model is not None and self.then is None:
            object.__setattr__(self, "then", "model")

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        config: dict[str, Any] = {"reasoner": "replay", "replay": str(self.run)}
        if self.then is not None:
            decided = {} if self.model is None else {"model": self.model.to_config()}
            until = {} if self.until is None else {"until": self.until}
            config["then"] = {"by": self.then, **decided, **until}

        return config | ({"whole": True} if self.is_whole else {})


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """A policy file decides, such as `prism.science.calibrate` makes.

    Args:
        policy: The file.
    """

    policy: Path | str

    def __post_init__(self) -> None:
        """Convert a text to a path."""
        object.__setattr__(self, "policy", Path(self.policy))

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        return {"reasoner": "calibrated", "policy": str(self.policy)}


ReasonerOptions = Model | ReplayOptions | None
"""What decides in a run: a model, an earlier run, or, if None, the default of the kind of run."""

DeciderOptions = ReasonerOptions | PolicyOptions
"""The same for runs in which a policy file can decide."""


def with_client(options: Any, given: Any) -> Any:
    """Return the options of a kept run with the client that it asks.

    Args:
        options: The options, as they were read.
        given: The client, or a model of it.

    Raises:
        InputError: If the run asks no such client.
    """
    client = given.client if isinstance(given, Model) else given
    writer: Any = getattr(options, "writer", None)
    asked = {"reasoner": options.reasoner, "writer": getattr(writer, "model", None)}
    models = {name: each for name, each in asked.items() if isinstance(each, Model)}
    lost = LostClient(type_of(client))
    found: dict[str, Any] = {
        name: replace(each, client=client) for name, each in models.items() if each.client == lost
    }
    if not found:
        raise _another_client(client, models.values())
    if "writer" in found:
        found["writer"] = replace(writer, model=found["writer"])

    return options.replace(**found)


def _another_client(client: Any, models: Iterable[Model]) -> InputError:
    kinds = sorted(type_of(each.client) for each in models if each.client is not None)
    which = " and ".join(kinds) or "no client of another library"
    return InputError(f"is {type_of(client)}, but the run asks {which}", field="model")


def files_of(reasoner: DeciderOptions) -> dict[str, Path]:
    """Return the files that a reasoner reads when a run begins, by name.

    Raises:
        InputError: If there is no such file, or the run could not find it again.
    """
    if isinstance(reasoner, PolicyOptions):
        return {str(reasoner.policy): Path(reasoner.policy)}
    if not isinstance(reasoner, ReplayOptions):
        return {}

    return {str(reasoner.run): recorded_log(reasoner), **files_of(reasoner.model)}


def recorded_log(replay: ReplayOptions) -> Path:
    """Return the log of the run that another run repeats.

    Raises:
        InputError: If it is a pipe, which can only be read once.
    """
    if is_stream(replay.run):
        problem = "is a pipe, which a resumed run could not read again: give a file or folder"
        raise InputError(problem, path=replay.run)

    return locate_log(replay.run)


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """Options for a model that writes the texts of a run.

    It shares budget and limits with the model that decides, if there is one. A replayed run
    takes the texts from the earlier run.

    Args:
        model: The model: None for the one that decides, the name of another one on its servers, or
            a separate `prism.llm.Model` or its text.
        max_length: Maximum length of a text in characters, unless its call gives another.
        language: Language of the texts, such as ``"German"``; None leaves it to the model.
        prompt: Template of the writer's prompt in a feed; see `prism.social.Feed`.

    Raises:
        InputError: If length or language is invalid.
    """

    model: str | Model | Any | None = None
    max_length: int = 280
    language: str | None = None
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Refuse an invalid length or language."""
        # a bare name refers to a model on the servers of the deciding one
        if self.model is not None and not (
            isinstance(self.model, str) and {*model_in_text(self.model)} == {"model"}
        ):
            object.__setattr__(self, "model", Model.of(self.model))
        try:
            self.wording()
        except FieldValueError as error:
            raise InputError(str(error), field="writer") from None

    def wording(self) -> Wording:
        """Return the length and the language of the texts."""
        return Wording(self.max_length, self.language)

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        model = self.model
        return {
            "model": model.to_config() if isinstance(model, Model) else model,
            "max_length": self.max_length,
            "language": self.language,
            # written only if given, so other runs are described as before
            **({} if self.prompt is None else {"prompt": self.prompt}),
        }


def replayed_writer(writer: WriterOptions | None) -> WriterOptions | None:
    """Return the options of a run whose texts are taken from an earlier one."""
    return None if writer is None else replace(writer, model=None)


def asks_a_model(
    reasoner: DeciderOptions, writer: WriterOptions | None, later: Later = NO_LATER
) -> bool:
    """Return whether a run asks a model, so that it would not write the same log again."""
    if isinstance(reasoner, ReplayOptions) and reasoner.then is not None:
        may_ask = bool(later) or isinstance(reasoner.model, Model)
        return (may_ask and reasoner.then == "model") or writer is not None

    is_switched = bool(later) and not isinstance(reasoner, ReplayOptions)
    return (
        is_switched
        or isinstance(reasoner, Model)
        or (writer is not None and isinstance(writer.model, Model))
    )


def deadline_of(reasoner: DeciderOptions, writer: WriterOptions | None) -> float | None:
    """Return the seconds for which a run may ask models; None without a limit."""
    if isinstance(reasoner, ReplayOptions) and reasoner.then is not None:
        reasoner = reasoner.model
    if isinstance(reasoner, Model):
        return reasoner.deadline

    model = None if writer is None else writer.model
    return model.deadline if isinstance(model, Model) else None
