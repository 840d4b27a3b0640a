"""Who decides and who writes in a run, as plain data: a model, an earlier run, a policy file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from prism.errors import FieldValueError, InputError
from prism.files._durable import is_stream
from prism.runlog._reader import locate_log
from prism.runs._assigned import NO_LATER, Later, ModelAssignment
from prism.runs._credentials import without_credentials
from prism.runs._settings import (
    RunSettings,
    Server,
    WriterSettings,
    given_settings,
    names_of,
    problem_with,
    settings_of,
)
from prism.statechart import Wording

Then = Literal["model", "policy"]
"""Who decides where a run parts from the one that it repeats."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The decisions are taken from the log of an earlier run.

    Args:
        run: The folder of the earlier run, or its log.
        model: Who decided in that run, where the new one may part from it; None for the built-in
            policy.
        then: Who decides from the first question on that is not the one of the log: ``model`` for
            whoever did in that run, or the built-in ``policy``. None if such a question is an
            error, the default without a model.
    """

    run: Path
    model: ModelOptions | PolicyOptions | None = None
    then: Then | None = None

    def __post_init__(self) -> None:
        """Ask a model that was given."""
        if self.model is not None and self.then is None:
            object.__setattr__(self, "then", "model")

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        config: dict[str, Any] = {"reasoner": "replay", "replay": str(self.run)}
        if self.then is not None:
            decided = {} if self.model is None else {"model": self.model.to_config()}
            config["then"] = {"by": self.then, **decided}

        return config


ONLY_DECIDES = names_of(RunSettings, "decision")
"""Options that say nothing to a model that writes."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions(RunSettings):
    """A language model decides; None stands for the default.

    Args:
        model: Name of the model, as the server lists it.
        host: Addresses of the servers; one at least where they are OpenAI-compatible.
        mode: ``decision`` asks a decision model for probabilities, ``chat`` has a model write its
            choice, ``auto`` takes decisions where server and model offer them.
        pick: What to do with probabilities: ``draw``, or take the likeliest (``argmax``).
        think: Whether the model may think before it answers: ``false``, ``true``, or how much.
        concurrency: Questions under way at once on each server.
        timeout: Seconds to wait for one reply.
        patience: Seconds to wait for a server that fails.
        hedge: Whether a question that straggles is put a second time; None for no.
        max_calls: Requests that the run may make.
        max_tokens: Tokens that it may use.
        deadline: Seconds that it may ask for.
        cache: File of answers to keep.
        stop_at_fallbacks: The share of the last 200 decisions, above 0 and up to 1, that ends the
            run if they fell back.
        server: How the servers are spoken to: ``ollama``, or ``openai`` for OpenAI-compatible ones.
        temperature: Sampling temperature of what the model writes; 0, the default, for the
            likeliest. The probabilities of decision models do not depend on it.
        assigned: Other models, hosts or settings for some of the agents.
        models_file: Where these were read, if anywhere, and its SHA-256.
        prompt: Template of what the model is told; see `prism.statechart.Reasoner`.
        attributes: Attributes of the agents that the model is told.
        remember: How many things agents remember when they decide.
        remember_tokens: How many tokens these may take; 400 by default.
        reasons: Whether the model is asked for a reason beside its choice; None for no.
        record_prompts: Whether every prompt and reply is kept in the run's folder; None for no.

    Raises:
        InputError: If a setting has an invalid value, the address of an OpenAI-compatible server
            is missing, or something is assigned twice.
    """

    model: str = field(kw_only=False)
    host: tuple[str, ...] | None = field(default=None, kw_only=False)
    server: Server = "ollama"
    assigned: tuple[ModelAssignment, ...] = ()
    models_file: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        """Refuse invalid values, and those that do not fit together."""
        RunSettings.__post_init__(self)
        if self.server == "openai" and not self.host:
            problem = "must name an OpenAI-compatible server: they have no usual address"
            raise InputError(problem, field="host")

        if self.remember_tokens is not None and self.remember is None:
            raise InputError(
                "limits what is remembered: say how many things, too, with remember",
                field="remember_tokens",
            )

        titles = [each.title for each in self.assigned]
        for each in self.assigned:
            if titles.count(each.title) > 1:
                raise each.error("is assigned twice: leave one out")
            self.for_those(each)

    @classmethod
    def from_file(cls, path: Path, **settings: Any) -> Self:
        """Read a TOML file of models: a default, and tables for kinds of agents.

        ::

            model = "llama3.2"
            host = "http://127.0.0.1:11434"

            [archetype.superuser]
            model = "llama3.3"
            temperature = 0.7

        The keys are those of `ModelAssignment`; a table is named by what agents are told apart by.

        Args:
            path: The file.
            settings: What goes before the file, and what it cannot say, such as ``max_calls``; None
                for what is not given.

        Raises:
            InputError: If the file cannot be read, has a key or a value that there is not, or names
                no default model; names the line.
        """
        # it loads pydantic, which few runs need
        from prism.runs._models_file import read_models

        common, assigned, sha256 = read_models(path)
        given = {name: value for name, value in settings.items() if value is not None}
        server = common.get("server", "ollama")
        if given.get("server", server) != server:
            # the servers of another dialect are others
            common.pop("host", None)

        together = {**common, **given}
        if "model" not in together:
            problem = "needs a default, the name of a model for all that no table is for"
            raise InputError(problem, path=path, field="model")

        return cls(**together, assigned=assigned, models_file=(str(path), sha256))

    def for_those(self, assignment: ModelAssignment) -> ModelOptions:
        """Return the options of the agents that a model is assigned to.

        Args:
            assignment: What is assigned to them.

        Raises:
            InputError: If it cannot be used.
        """
        own = assignment.settings
        host = {"host": None} if own.get("server", self.server) != self.server else {}
        try:
            return replace(self, **{**host, **own}, assigned=(), models_file=None)
        except InputError as error:
            raise assignment.error(error.problem, error.field) from None

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data: those that are not None, as JSON has them.

        Hosts are without names and passwords; those that had them are among ``credentials``.
        """
        settings = given_settings(self)
        plain = {name: _plain(settings[name]) for name in _IN_CONFIG if name in settings}
        given: dict[str, Any] = {"reasoner": self.server, **plain}
        if self.assigned:
            given["models"] = {"assigned": [each.to_config() for each in self.assigned]}
        if self.assigned and self.models_file is not None:
            given["models"] |= dict(zip(("file", "sha256"), self.models_file, strict=True))

        return without_credentials(given)


_IN_CONFIG = [name for name in names_of(ModelOptions) if name not in ("server", "temperature")]
"""The settings that ``run.json`` has beside ``reasoner``, in its order."""

# files that stand have it here, and others are to stay the same to the byte
_IN_CONFIG.insert(_IN_CONFIG.index("prompt"), "temperature")


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """A policy file decides, as `prism.science.calibrate` makes them.

    Args:
        policy: The file.
    """

    policy: Path | str

    def __post_init__(self) -> None:
        """Take a text for a path."""
        object.__setattr__(self, "policy", Path(self.policy))

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        return {"reasoner": "calibrated", "policy": str(self.policy)}


ReasonerOptions = ModelOptions | ReplayOptions | None
"""Who decides in a run: a model, an earlier run, or, if None, whoever the kind of run says."""

DeciderOptions = ReasonerOptions | PolicyOptions
"""The same for runs of agents whose decisions a policy file can make."""


def options_of(assignment: ModelAssignment) -> ModelOptions:
    """Return the options of a model that a run does not begin with.

    Raises:
        InputError: If no model is named, or an option cannot be used.
    """
    settings = assignment.settings
    if "model" not in settings:
        raise assignment.error("is missing: the policy has decided so far", "model")

    return ModelOptions(**settings)


def files_of(reasoner: DeciderOptions) -> dict[str, Path]:
    """Return the files that who decides reads when a run begins, by what they are called.

    Raises:
        InputError: If there is no such file, or the run could not find it again.
    """
    if isinstance(reasoner, PolicyOptions):
        return {str(reasoner.policy): Path(reasoner.policy)}
    if not isinstance(reasoner, ReplayOptions):
        return {}

    if is_stream(reasoner.run):
        problem = "is a pipe: the run has to find it again, so give a file or folder"
        raise InputError(problem, path=reasoner.run)

    return {str(reasoner.run): locate_log(reasoner.run), **files_of(reasoner.model)}


@dataclass(frozen=True, slots=True)
class WriterOptions(WriterSettings):
    """A language model writes the texts of a run.

    Budget, cache and limits are those of the model that decides, if one does. In a run that is
    replayed the texts are taken from the earlier run.

    Args:
        model: The model: None for the one that decides, the name of another one on its servers, or
            options of its own.
        max_length: Most characters of a text, where nothing else is said for it.
        language: Language of the texts, such as ``"German"``; None leaves it to the model.

    Raises:
        InputError: If length or language cannot be.
    """

    model: str | ModelOptions | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Refuse what no text could follow."""
        try:
            self.wording()
        except FieldValueError as error:
            raise InputError(str(error), field="writer") from None

        name = settings_of(WriterOptions)["model"]
        if isinstance(self.model, str) and (problem := problem_with(name, self.model)) is not None:
            raise InputError(problem, field="writer")

    def wording(self) -> Wording:
        """Return the length and the language of the texts."""
        return Wording(self.max_length, self.language)

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        model = self.model
        return {
            "model": model.to_config() if isinstance(model, ModelOptions) else model,
            "max_length": self.max_length,
            "language": self.language,
        }


def replayed_writer(writer: WriterOptions | None) -> WriterOptions | None:
    """Return the options of a run whose texts are taken from an earlier one."""
    return None if writer is None else replace(writer, model=None)


def asks_a_model(
    reasoner: DeciderOptions, writer: WriterOptions | None, later: Later = NO_LATER
) -> bool:
    """Return whether a run would not write the same log again."""
    if isinstance(reasoner, ReplayOptions) and reasoner.then is not None:
        may_ask = bool(later) or isinstance(reasoner.model, ModelOptions)
        return (may_ask and reasoner.then == "model") or writer is not None

    is_switched = bool(later) and not isinstance(reasoner, ReplayOptions)
    return (
        is_switched
        or isinstance(reasoner, ModelOptions)
        or (writer is not None and isinstance(writer.model, ModelOptions))
    )


def deadline_of(reasoner: DeciderOptions, writer: WriterOptions | None) -> float | None:
    """Return the seconds that a run may ask models for; None without a limit."""
    if isinstance(reasoner, ReplayOptions) and reasoner.then is not None:
        reasoner = reasoner.model
    if isinstance(reasoner, ModelOptions):
        return reasoner.deadline

    model = None if writer is None else writer.model
    return model.deadline if isinstance(model, ModelOptions) else None


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)

    return list(value) if isinstance(value, tuple) else value
