"""Options of a run as plain data: who decides, what each key may hold, and digests of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from math import isfinite
from pathlib import Path
from reprlib import repr as brief
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

from prism.errors import InputError
from prism.files._durable import is_stream
from prism.runlog._reader import locate_log
from prism.runs._assigned import ModelAssignment
from prism.runs._credentials import without_credentials
from prism.runs._models_file import read_models
from prism.runs._settings import (
    RunSettings,
    Server,
    Setting,
    given_settings,
    names_of,
    problem_with,
    problem_with_text,
    settings_of,
)

Kinds = Mapping[str, Any]
"""What each key may hold: a type, a tuple of texts to choose from, or what a setting may be; a list
is one of texts, and an ``object`` is anything."""


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
        common, assigned, sha256 = read_models(path)
        given = {name: value for name, value in settings.items() if value is not None}
        if given.get("server", common.get("server")) != common.get("server"):
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


_CONFIG_KINDS: Kinds = {
    **{name: each for name, each in settings_of(ModelOptions).items() if name != "server"},
    "credentials": list,
    "models": dict,
}

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

REASONER_KINDS: Mapping[str, Kinds] = {
    **dict.fromkeys(get_args(Server), _CONFIG_KINDS),
    "replay": {"replay": str, "then": dict},
}
"""Keys of each kind of reasoner beside ``reasoner`` itself."""

DECIDER_KINDS: Mapping[str, Kinds] = {**REASONER_KINDS, "calibrated": {"policy": str}}
"""The same for runs whose reasoner decides, and does not only write."""


_MUST_NAME = ("model", "replay", "policy")
"""Keys that a kind of reasoner cannot do without."""


def read_reasoner(config: Mapping[str, Any]) -> ReasonerOptions:
    """Read what the ``to_config`` of the options returned, in a configuration that was checked.

    Returns:
        The options; None if ``reasoner`` is neither a kind of server nor ``replay``.
    """
    if config["reasoner"] not in REASONER_KINDS:
        return None
    if config["reasoner"] == "replay":
        return _read_replay(config)

    given = {name: value for name, value in config.items() if name in _CONFIG_KINDS}
    given.pop("credentials", None)
    for name in ("host", "attributes"):
        if name in given:
            given[name] = tuple(given[name])
    if "cache" in given:
        given["cache"] = Path(given["cache"])

    by_agent = _assigned(given.pop("models", {}))

    return ModelOptions(**given, **by_agent, server=config["reasoner"])


def _read_replay(config: Mapping[str, Any]) -> ReplayOptions:
    """Read a replay, and who decides where the log does not."""
    run, then = Path(config["replay"]), config.get("then")
    if then is None:
        return ReplayOptions(run)
    try:
        by, model = then["by"], read_decider(then["model"]) if "model" in then else None
    except (TypeError, KeyError):
        raise InputError(f"cannot be {brief(then)}", field="then") from None
    is_unknown = model is None and "model" in then
    if is_unknown or isinstance(model, ReplayOptions) or by not in get_args(Then):
        raise InputError(f"cannot be {brief(then)}", field="then")

    return ReplayOptions(run, model, by)


def read_decider(config: Mapping[str, Any]) -> DeciderOptions:
    """Read what the ``to_config`` of a policy file or other options returned; see `read_reasoner`.

    Returns:
        The options; None if ``reasoner`` is none of these.
    """
    if config["reasoner"] == "calibrated":
        return PolicyOptions(Path(config["policy"]))

    return read_reasoner(config)


def _assigned(models: Mapping[str, Any]) -> dict[str, Any]:
    """Read what ``run.json`` has of the models of some agents."""
    try:
        assigned = [
            ModelAssignment(**{**each, "host": tuple(each["host"])} if "host" in each else each)
            for each in models.get("assigned", ())
        ]
        file = (str(models["file"]), str(models["sha256"])) if "file" in models else None
    except (TypeError, KeyError):
        raise InputError(f"cannot be {brief(models)}", field="models") from None

    return {"assigned": tuple(assigned), "models_file": file}


def check_config(
    config: Mapping[str, Any], path: Path, needed: Kinds, optional: Kinds = MappingProxyType({})
) -> None:
    """Refuse plain data with keys that are missing or unknown, or hold what they cannot.

    The keys of the kind of reasoner that it names are known.

    Args:
        config: A run as plain data.
        path: Where it stands, for messages.
        needed: What each key has to hold.
        optional: What keys hold that may be missing.

    Raises:
        InputError: At the first such key.
    """
    reasoner = config.get("reasoner")
    of_reasoner = DECIDER_KINDS.get(reasoner, {}) if isinstance(reasoner, str) else {}
    optional = {**of_reasoner, **optional}
    needed = {
        **needed,
        **{name: kind for name, kind in of_reasoner.items() if name in _MUST_NAME},
    }
    for name in needed:
        if name not in config:
            raise InputError("is missing", path=path, field=name)

    kinds = {**needed, **optional}
    for name, value in config.items():
        if name not in kinds:
            raise InputError("is unknown", path=path, field=name)
        kind = kinds[name]
        if isinstance(kind, Setting):
            if (problem := problem_with(kind, value)) is not None:
                raise InputError(problem, path=path, field=name)
        elif not _is_a(kind, value):
            raise InputError(f"cannot be {brief(value)}", path=path, field=name)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have the errors of options name the file that they were read from."""
    try:
        yield
    except InputError as error:
        raise InputError(error.problem, path=path, field=error.field) from None


def require_unchanged(began: Mapping[str, str], now: Mapping[str, str], path: Path) -> None:
    """Refuse to go on with files that have changed.

    Args:
        began: Digests of the files that the run read when it began, by their names.
        now: Those that it would read now.
        path: The run's summary, for messages.

    Raises:
        InputError: At the first file whose digest is another, or that was not read then.
    """
    for name, found in now.items():
        if began.get(name) != found:
            problem = f"is not what it was when the run in {path.parent} began: put it back"
            raise InputError(problem, path=name)


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


def require_writable(field: str, value: Any) -> None:
    """Refuse a number or a text that JSON has no room for: the run could not be resumed.

    Raises:
        InputError: If it is one.
    """
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"must be a finite number, got {value}", field=field)
    if (problem := problem_with_text(str(value))) is not None:
        raise InputError(problem, field=field)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        InputError: If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        hint = "a run is resumed where it was begun, and with the same files"
        raise InputError(f"cannot be read ({error.strerror}): {hint}", path=path) from None


def _is_a(kind: Any, value: Any) -> bool:
    if kind is object:  # whoever reads it looks at it
        return True
    if isinstance(kind, tuple):
        return value in kind
    if kind is bool:
        return isinstance(value, bool)
    if isinstance(value, list):
        return kind is list and all(_is_a(str, item) for item in value)

    return isinstance(value, kind) and not isinstance(value, bool) and "\0" not in str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)

    return list(value) if isinstance(value, tuple) else value
