"""The configuration of a run in ``run.json``: the type of each key, and reading options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest
from math import isfinite
from pathlib import Path
from reprlib import repr as brief
from types import MappingProxyType
from typing import Any, get_args

from prism.errors import InputError
from prism.llm import Model
from prism.llm._model import LostClient
from prism.llm._settings import KEYS, OF_SPENDING, Server, from_plain, settings_of
from prism.runs._folder import SUMMARY_NAME, read_summary
from prism.runs._options import (
    DeciderOptions,
    PolicyOptions,
    ReasonerOptions,
    ReplayOptions,
    Then,
    WriterOptions,
    replayed_writer,
)

Kinds = Mapping[str, Any]
"""The type of each key: a type, or a tuple of allowed texts. A list holds texts, and an ``object``
is anything."""


_CONFIG_KINDS: Kinds = {
    # checked when the model is made
    KEYS.get(name, name): object
    for name in settings_of()
    if name != "server"
}

REASONER_KINDS: Mapping[str, Kinds] = {
    **dict.fromkeys(get_args(Server), _CONFIG_KINDS),
    "client": {**_CONFIG_KINDS, "client": str},
    "replay": {"replay": str, "then": dict, "whole": bool},
}
"""Keys of each kind of reasoner, besides ``reasoner`` itself."""

DECIDER_KINDS: Mapping[str, Kinds] = {**REASONER_KINDS, "calibrated": {"policy": str}}
"""The same for runs whose reasoner also decides, not only writes."""


_MUST_NAME = ("model", "replay", "policy", "client")
"""Keys that a kind of reasoner requires."""


def read_reasoner(config: Mapping[str, Any]) -> ReasonerOptions:
    """Read what ``to_config`` of the options returned, in a checked configuration.

    Returns:
        The options; None if ``reasoner`` is neither a kind of server nor ``replay``.
    """
    if config["reasoner"] not in REASONER_KINDS:
        return None
    if config["reasoner"] == "replay":
        return _read_replay(config)

    given = {name: value for name, value in config.items() if name in _CONFIG_KINDS}
    settings = from_plain(given)
    if config["reasoner"] == "client":
        # a client cannot be kept, so it has to be given again when the run is resumed
        return Model(**settings, client=LostClient(config["client"]))

    return Model(**settings, server=config["reasoner"])


def _read_replay(config: Mapping[str, Any]) -> ReplayOptions:
    """Read a replay, and what decides where the log does not."""
    run, then = Path(config["replay"]), config.get("then")
    if then is None:
        return ReplayOptions(run, is_whole=config.get("whole", False))
    try:
        by, model = then["by"], read_decider(then["model"]) if "model" in then else None
    except (TypeError, KeyError):
        raise InputError(f"cannot be {brief(then)}", field="then") from None
    is_unknown = model is None and "model" in then
    if is_unknown or isinstance(model, ReplayOptions) or by not in get_args(Then):
        raise InputError(f"cannot be {brief(then)}", field="then")

    return ReplayOptions(run, model, by, until=then.get("until"))


def read_decider(config: Mapping[str, Any]) -> DeciderOptions:
    """Read what ``to_config`` of a policy file or other options returned; see `read_reasoner`.

    Returns:
        The options; None if ``reasoner`` is none of these.
    """
    if config["reasoner"] == "calibrated":
        return PolicyOptions(Path(config["policy"]))

    return read_reasoner(config)


def check_config(
    config: Mapping[str, Any], path: Path, needed: Kinds, optional: Kinds = MappingProxyType({})
) -> None:
    """Refuse plain data with missing or unknown keys, or with invalid values.

    The keys of the kind of reasoner that it names are known.

    Args:
        config: A run as plain data.
        path: The file that it comes from, for messages.
        needed: The type of each required key.
        optional: The type of each optional key.

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
        if not _is_a(kinds[name], value):
            raise InputError(f"cannot be {brief(value)}", path=path, field=name)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make errors about options name the file from which these were read."""
    try:
        yield
    except InputError as error:
        raise InputError(error.problem, path=path, field=error.field) from None


def read_writer(config: Mapping[str, Any], path: Path) -> WriterOptions | None:
    """Read the writer's options in a run's configuration.

    Args:
        config: A run as plain data.
        path: The file that it comes from, for messages.

    Raises:
        InputError: If they are invalid.
    """
    if "writer" not in config:
        return None

    given = config["writer"]
    kinds = {"model": str | dict | None, "max_length": int, "language": str | None}
    check_config(given, path, kinds, {"prompt": str})
    model = given["model"]
    if isinstance(model, dict):
        check_config(model, path, {"reasoner": (*get_args(Server), "client")})
        model = read_reasoner(model)

    with naming(path):
        return WriterOptions(model, given["max_length"], given["language"], given.get("prompt"))


def require_model_of(reasoner: DeciderOptions, writer: WriterOptions | None) -> None:
    """Refuse a writer without a model, and a replay that would leave out the texts.

    Raises:
        InputError: If it is one.
    """
    if writer is None:
        if isinstance(reasoner, ReplayOptions) and recorded_writer(reasoner.run) is not None:
            problem = f"contains texts by a model: pass writer={WriterOptions.__name__}(...), too"
            raise InputError(problem, path=reasoner.run)
    elif isinstance(reasoner, Model):
        # a writer without its own model has no settings that could conflict
        twice = [name for name in OF_SPENDING if getattr(writer.model, name, None) is not None]
        if twice:
            problem = f"must have no {twice[0]}: that of the deciding model applies to both"
            raise InputError(problem, field="writer")
    elif not isinstance(reasoner, ReplayOptions) and not isinstance(writer.model, Model):
        raise InputError(
            "needs a model, since none decides: WriterOptions(Model('llama3.2'))",
            field="writer",
        )


def recorded_writer(run: Path) -> WriterOptions | None:
    """Return the writer's options in an earlier run's ``run.json``, for a replay of it.

    Args:
        run: The folder of the run, or its log.

    Returns:
        Options without a model; None if there was no writer, or it is unknown.
    """
    if not (run / SUMMARY_NAME).is_file():
        return None

    found = read_writer(read_summary(run)["config"], run / SUMMARY_NAME)

    return replayed_writer(found)


def require_writable(field: str, value: Any) -> None:
    """Refuse a number or a text that JSON cannot represent, since the run could not be resumed.

    Raises:
        InputError: If it is one.
    """
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"must be a finite number, got {value}", field=field)
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"must be valid UTF-8, for run.json; got {text!a}", field=field) from None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        InputError: If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        hint = "resume a run where it was begun, with the same files"
        raise InputError(f"cannot be read ({error.strerror}): {hint}", path=path) from None


def _is_a(kind: Any, value: Any) -> bool:
    if kind is object:  # checked by its reader
        return True
    if isinstance(kind, tuple):
        return value in kind
    if kind is bool:
        return isinstance(value, bool)
    if isinstance(value, list):
        return kind is list and all(_is_a(str, item) for item in value)

    return isinstance(value, kind) and not isinstance(value, bool) and "\0" not in str(value)
