"""What decides and writes in a run, and how ``run.json`` describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, get_args

from prism.errors import FieldValueError, InputError
from prism.llm import Model
from prism.llm.addresses import Kind
from prism.llm.model import LostClient
from prism.llm.settings import KEYS, OF_SPENDING, from_plain, settings_of
from prism.reasoner import Wording

ALL_OTHERS = "all others"
"""The title of agents that use the run's own model."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """The earlier run that a run carries out again, with the answers in its journal.

    Args:
        run: The folder of the earlier run.
        until: The round from which on somebody is asked, and not its journal. If there is none,
            nobody is, and the log must have the same lines, too.
        by_others: Kinds of answers, ``decision`` and ``text``, that another model gave, so that an
            equal question is asked anew.
    """

    run: Path
    until: int | None = None
    by_others: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether somebody may be asked."""
        return self.until is not None

    def to_config(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"run": str(self.run), "until": self.until, "by_others": [*self.by_others]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self | None:
        """Read what `to_config` returned, in the configuration of a run."""
        kept = config.get("repeats")
        return cls(Path(kept["run"]), kept["until"], tuple(kept["by_others"])) if kept else None


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


POLICY = "policy"
"""The entry of ``run.json`` for a run whose decisions are drawn."""

DeciderOptions = Model | PolicyOptions | None
"""What decides in a run: a model, a policy file, or, if None, the default of the kind of run."""


@dataclass(frozen=True, slots=True)
class Before:
    """What decides in a run until another reasoner or model does, as from a round of a rerun on.

    Args:
        decider: What decides first.
        until: The round from which on the run's own decides.
    """

    decider: DeciderOptions
    until: int

    def to_config(self) -> dict[str, Any]:
        """Return it as plain data."""
        kept = {"reasoner": POLICY} if self.decider is None else self.decider.to_config()
        return {"until": self.until, **kept}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self | None:
        """Read what `to_config` returned, in the configuration of a run."""
        kept = config.get("before")
        return None if kept is None else cls(read_decider(kept), kept["until"])


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """Options for a model that writes the texts of a run.

    It shares budget and limits with the model that decides, if there is one.

    Args:
        model: The model or its text, as `prism.llm.Model.of` takes it; None for the one that
            decides.
        max_length: Maximum length of a text in characters, unless its call gives another.
        language: Language of the texts, such as ``"German"``; None leaves it to the model.

    Raises:
        InputError: If length or language is invalid.
    """

    model: str | Model | Any | None = None
    max_length: int = 280
    language: str | None = None

    def __post_init__(self) -> None:
        """Refuse an invalid length or language."""
        if self.model is not None:
            object.__setattr__(self, "model", Model.of(self.model))
        try:
            object.__setattr__(self, "max_length", self.wording().max_length)
        except FieldValueError as error:
            raise InputError(str(error), field="writer") from None

    def wording(self) -> Wording:
        """Return the length and the language of the texts."""
        return Wording(self.max_length, self.language)

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        model = self.model.to_config() if isinstance(self.model, Model) else None
        return {"model": model, "max_length": self.max_length, "language": self.language}


def require_model_of(decider: DeciderOptions, writer: WriterOptions | None) -> None:
    """Refuse a writer without a model, or with settings that contradict those of the decider.

    Raises:
        InputError: If it is one.
    """
    if writer is None:
        return
    if not isinstance(decider, Model) and not isinstance(writer.model, Model):
        problem = "needs a model, since none decides: WriterOptions(Model('llama3.2'))"
        raise InputError(problem, field="writer")
    # a writer without its own model has no settings that could conflict
    twice = [name for name in OF_SPENDING if getattr(writer.model, name, None) is not None]
    if isinstance(decider, Model) and twice:
        problem = f"must have no {twice[0]}: that of the deciding model applies to both"
        raise InputError(problem, field="writer")


def models_of(options: Any) -> Iterator[Model]:
    """Yield all models that a run may ask.

    Args:
        options: The run.
    """
    writer, before, repeats = getattr(options, "writer", None), options.before, options.repeats
    # whose answers may all be in the journal
    is_over = before is not None and repeats is not None and before.until <= (repeats.until or 0)
    before = None if is_over else before
    clients = (options.reasoner, getattr(writer, "model", None), getattr(before, "decider", None))
    yield from (each for each in clients if isinstance(each, Model))


def with_client(options: Any, client_or_model: Any) -> Any:
    """Return the options of a kept run with the client of another library that it asks.

    Args:
        options: The options, as they were read.
        client_or_model: The client, or a model of it.

    Raises:
        InputError: If the run asks none.
    """
    client = client_or_model.client if isinstance(client_or_model, Model) else client_or_model
    changes: dict[str, Any] = {}
    for name in ("reasoner", "writer"):
        option: Any = getattr(options, name, None)
        model: Any = option.model if isinstance(option, WriterOptions) else option
        if isinstance(model, Model) and isinstance(model.client, LostClient):
            again = replace(model, client=client)
            changes[name] = again if option is model else replace(option, model=again)
    if not changes:
        raise InputError("is not asked: the run has no client of another library", field="model")
    return options.replace(**changes)


# Reading run.json


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make errors about options name the file from which these were read.

    Raises:
        InputError: Instead of any other error about them.
    """
    try:
        yield
    except InputError as error:
        raise InputError(error.problem, path=path, field=error.field) from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"does not describe a run: {error!r}", path=path) from None


def read_decider(config: Mapping[str, Any]) -> DeciderOptions:
    """Read what ``to_config`` of the options returned, in the configuration of a run."""
    kind = config["reasoner"]
    if kind == "calibrated":
        return PolicyOptions(Path(config["policy"]))
    if kind not in (*get_args(Kind), "client"):
        return None

    names = {KEYS.get(name, name) for name in settings_of()} - {"server"}
    settings = from_plain({name: value for name, value in config.items() if name in names})
    if kind == "client":
        # a client cannot be kept, so it has to be given again when the run is resumed
        return Model(**settings, client=LostClient(config["client"]))
    return Model(**settings, server=kind)


def read_writer(config: Mapping[str, Any]) -> WriterOptions | None:
    """Read the writer's options in the configuration of a run."""
    if "writer" not in config:
        return None
    options = dict(config["writer"])
    if isinstance(options["model"], dict):
        options["model"] = read_decider(options["model"])
    return WriterOptions(**options)
