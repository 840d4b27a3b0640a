"""Options of a run whose texts a language model writes, and who is asked then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from prism.errors import FieldValueError, InputError
from prism.runlog import ReplayReasoner, ReplayWriter
from prism.runlog._replay import Parting
from prism.runs._folder import SUMMARY_NAME, read_summary
from prism.runs._makers import (
    NO_LATER,
    Later,
    Shared,
    make_reasoner,
    make_writer,
    policy_until,
)
from prism.runs._options import (
    ONLY_DECIDES,
    DeciderOptions,
    ModelOptions,
    PolicyOptions,
    ReplayOptions,
    check_config,
    naming,
    read_reasoner,
    require_writable,
)
from prism.runs._settings import Server, WriterSettings, names_of
from prism.statechart import (
    BaseReasoner,
    BaseWriter,
    PolicyReasoner,
    Reasoner,
    Wording,
    Writer,
)
from prism.statechart.reasoner._by_agent import ReasonerByAgent, WriterByAgent

_SHARED = names_of(ModelOptions, "spending")


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

        if not isinstance(self.model, ModelOptions):
            require_writable("writer", self.model)

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


def read_writer(config: Mapping[str, Any], path: Path) -> WriterOptions | None:
    """Read what the options of a run said of who writes.

    Args:
        config: A run as plain data.
        path: Where it stands, for messages.

    Raises:
        InputError: If it is something else.
    """
    if "writer" not in config:
        return None

    given = config["writer"]
    kinds = {"model": str | dict | None, "max_length": int, "language": str | None}
    check_config(given, path, kinds)
    model = given["model"]
    if isinstance(model, dict):
        check_config(model, path, {"reasoner": get_args(Server)})
        model = read_reasoner(model)

    with naming(path):
        return WriterOptions(model, given["max_length"], given["language"])


def require_model_of(reasoner: DeciderOptions, writer: WriterOptions | None) -> None:
    """Refuse a writer without a model, and a replay that would leave out the texts.

    Raises:
        InputError: If it is one.
    """
    if isinstance(reasoner, ReplayOptions):
        if writer is None and recorded_writer(reasoner.run) is not None:
            problem = f"holds texts of a model: give writer={WriterOptions.__name__}(...), too"
            raise InputError(problem, path=reasoner.run)
        return

    own = None if writer is None else writer.model
    decides = isinstance(reasoner, ModelOptions)
    if writer is not None and not decides and not isinstance(own, ModelOptions):
        raise InputError(
            "needs a model, as none decides: WriterOptions(ModelOptions('llama3.2'))",
            field="writer",
        )

    if decides and isinstance(own, ModelOptions):
        for name in _SHARED:
            if getattr(own, name) is not None:
                problem = f"must have no {name}: that of the model that decides holds for both"
                raise InputError(problem, field="writer")


def recorded_writer(run: Path) -> WriterOptions | None:
    """Return who wrote in an earlier run, as its ``run.json`` says, for a replay of it.

    Args:
        run: The folder of the run, or its log.

    Returns:
        Options without a model; None if nobody wrote, or nothing says so.
    """
    if not (run / SUMMARY_NAME).is_file():
        return None

    found = read_writer(read_summary(run)["config"], run / SUMMARY_NAME)

    return replayed_writer(found)


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


def make_askers(
    reasoner: DeciderOptions,
    writer: WriterOptions | None,
    seed: int,
    fallback: Any,
    *,
    chart: str | None = None,
    later: Later = NO_LATER,
) -> tuple[BaseReasoner | None, BaseWriter | None]:
    """Make who decides and who writes in a run; a model that does both is one client.

    Args:
        reasoner: Who decides; None for whoever the kind of run says.
        writer: Who writes.
        seed: Seed of the run.
        fallback: The state to take when a model gives no valid answer.
        chart: Name of the chart of agents that do not say it themselves.
        later: Models that decide in the course of the run, by what the log calls them; where one
            model decides and writes, they write, too.

    Returns:
        The two; None for who was not named.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If the log of the earlier run, or the file of answers, cannot be used.
    """
    if isinstance(reasoner, ReplayOptions) and reasoner.then is not None:
        return _until_they_part(reasoner, writer, seed, fallback, chart, later)

    shared = Shared.of(reasoner) if isinstance(reasoner, ModelOptions) else None
    decides = _decider(reasoner, seed, fallback, chart, shared, later)
    if writer is None:
        return decides, None
    if isinstance(reasoner, ReplayOptions):
        return decides, ReplayWriter(reasoner.run, verbatim=True)
    if not isinstance(reasoner, ModelOptions):
        assert isinstance(writer.model, ModelOptions)
        return decides, make_writer(writer.model, seed, chart=chart)
    if writer.model is not None:
        options = _own_model(reasoner, writer.model)
        return decides, make_writer(options, seed, chart=chart, shared=shared)

    return decides, _written_by(decides, seed)


def _until_they_part(
    replayed: ReplayOptions,
    writer: WriterOptions | None,
    seed: int,
    fallback: Any,
    chart: str | None,
    later: Later,
) -> tuple[BaseReasoner, BaseWriter | None]:
    """Make who answers from the log of an earlier run, and from where they part by themselves."""
    asked, writes = make_askers(replayed.model, writer, seed, fallback, chart=chart, later=later)
    parting = Parting()
    decides = asked if asked is not None and replayed.then == "model" else PolicyReasoner(seed)
    log = replayed.run
    reasoner = ReplayReasoner(log, verbatim=True, otherwise=decides, told=asked, parting=parting)
    if writes is None:
        return reasoner, None

    return reasoner, ReplayWriter(log, verbatim=True, otherwise=writes, parting=parting)


def _decider(
    reasoner: DeciderOptions,
    seed: int,
    fallback: Any,
    chart: str | None,
    shared: Shared | None,
    later: Later,
) -> BaseReasoner | None:
    if reasoner is None:
        return policy_until(later, seed, fallback) if later else None

    made = make_reasoner(reasoner, seed, fallback, chart=chart, shared=shared, later=later)
    is_policy = isinstance(reasoner, PolicyOptions)
    return policy_until(later, seed, fallback, made) if is_policy and later else made


def _written_by(decides: Any, seed: int) -> BaseWriter:
    """Return a writer that asks the very clients of who decides."""

    def writer(part: Reasoner) -> Writer:
        return Writer(part.client, seed=seed, budget=part.budget, cache=part.cache)

    if not isinstance(decides, ReasonerByAgent):
        return writer(decides)

    parts = {name: writer(cast(Reasoner, part)) for name, part in decides.parts.items()}
    # what is wrong with the assignment is said of who decides
    return WriterByAgent(parts, decides.choose)


def _own_model(reasoner: ModelOptions, model: str | ModelOptions) -> ModelOptions:
    """Return the options of another model, which is named or has its own."""
    if isinstance(model, ModelOptions):
        return model

    unwanted: dict[str, Any] = dict.fromkeys((*ONLY_DECIDES, "models_file"))
    return replace(reasoner, model=model, assigned=(), **unwanted)
