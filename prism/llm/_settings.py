"""The settings of a model, each declared once: its name, type, default, help and bounds.

A setting is a field of `prism.llm.Model`, or of `prism.runs.WriterOptions`, made by `setting`. All
code that needs more than the values of settings calls `settings_of`: the validation of objects made
in Python, the readers of files of models, of treatments and of ``run.json``, and the command line.
::

    timeout = settings_of(Model)["timeout"]
    timeout.name        # "timeout"
    timeout.key         # "timeout", its name in files: that of `hosts` is "host"
    timeout.type        # float; of a field that may be None, the other type
    timeout.default     # None
    timeout.usual       # 60.0, for which None stands
    timeout.help        # "Seconds to wait for one reply; 60 by default."
    timeout.least       # 0.01, the smallest valid number; `above` and `most` are bounds, too
    timeout.choices     # () or the texts to choose from, where the type is a Literal
    timeout.option      # "--timeout"
    timeout.words       # () or the texts that are valid beside numbers, such as "never"
    timeout.metavar     # None or, for example, "URL"
    timeout.panel       # "Asking a model" or "Keeping the run", the group in ``--help``
    timeout.repeats     # True if the option may be given several times: the field is a list
    timeout.has_commas  # True if one option may hold several values, with commas between them
    timeout.is_flag     # True if the option takes no value: the field is a bool
    timeout.is_file     # True if the option names a file, whose text is the value
    timeout.is_option   # True if the command line has an option for it
    timeout.secret      # True if a part of the value must never be shown
    timeout.concerns    # what it is about, see `Concern`

For a Typer option, its parameter is named ``key`` (``prompt``, an option that names a file, is a
``Path``), its annotation is ``type | None`` or, if it ``repeats``, ``list[type] | None``, and its
default None, or False for a flag. The default that the help names is applied later, so given values
can be distinguished from missing ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from reprlib import repr as brief
from types import NoneType
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from prism.errors import FieldValueError, InputError
from prism.llm._addresses import check_address
from prism.llm._credentials import Address, full_address

Mode = Literal["auto", "decision", "chat"]
Pick = Literal["draw", "argmax"]
OptionOrder = Literal["chart", "shuffled"]
Think = Literal["false", "true", "low", "medium", "high"]
Server = Literal["ollama", "openai"]

Concern = Literal["model", "price", "request", "decision", "spending", "keeping"]
"""The subject of a setting: which model is asked and where, the price of its tokens, how requests
are made, how it decides (not for a model that only writes), what the run may spend, and what is
kept."""


_REPLY_SHARE = 4
"""The default fraction of the window for the reply is one over this number."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting, besides the name, type and default of its field.

    Args:
        concerns: Its subject.
        help: Its description in ``--help``.
        usual: The value for which None stands, wherever the model is asked; ``{usual}`` in the
            help.
        least: The smallest valid number.
        above: The exclusive lower bound of a number.
        most: The largest valid number.
        metavar: The name of its value in ``--help``.
        option: Its option on a command line; ``--`` and its name by default.
        key: Its name in files, and of the parameter of a command; that of the field by default.
        has_commas: Whether one option may hold several values, with commas between them.
        is_option: Whether the command line has an option for it.
        is_file: Whether its option names a file, whose text is the value.
        secret: Whether a part of its value must never be shown.
        name: Name of the field; `settings_of` fills in this and the following.
        type: Type of the field, or of one item if it is a list; never None.
        default: Default of the field; None if it is required.
        choices: The texts to choose from.
        words: Texts that are valid besides numbers, if the type is a number or a Literal.
        repeats: Whether the field is a list of texts.
    """

    concerns: Concern
    help: str
    _: KW_ONLY
    usual: Any = None
    least: float | None = None
    above: float | None = None
    most: float | None = None
    metavar: str | None = None
    option: str = ""
    key: str = ""
    has_commas: bool = False
    is_option: bool = True
    is_file: bool = False
    secret: bool = False
    name: str = ""
    type: Any = str
    default: Any = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    repeats: bool = False

    @property
    def is_flag(self) -> bool:
        """Whether its option takes no value."""
        return self.type is bool

    @property
    def panel(self) -> str:
        """Name of its group of options in ``--help``."""
        return "Keeping the run" if self.concerns == "keeping" else "Asking a model"


_SETTING = "setting"
"""The key of a field's metadata that holds its `Setting`."""

_FOUND: dict[type[Any], Mapping[str, Setting]] = {}
"""The settings of dataclasses for which `settings_of` was called."""


def settings_of(kind: type[Any]) -> Mapping[str, Setting]:
    """Return the settings that a dataclass declares or inherits, by name, in their order."""
    if kind not in _FOUND:
        _FOUND[kind] = _declared(kind)

    return _FOUND[kind]


def _declared(kind: type[Any]) -> Mapping[str, Setting]:
    inherited: dict[str, Setting] = {}
    for base in kind.__mro__[:0:-1]:
        inherited |= settings_of(base) if is_dataclass(base) else {}

    hints = get_type_hints(kind)
    found = {}
    for each in fields(kind):
        # a field that is declared again, for example as required, is the same setting
        setting = each.metadata.get(_SETTING, inherited.get(each.name))
        if setting is not None:
            default = None if each.default is MISSING else each.default
            found[each.name] = _filled_in(setting, each.name, hints[each.name], default)

    return found


def _filled_in(setting: Setting, name: str, hint: Any, default: Any) -> Setting:
    kind = _without_none(hint)
    repeats = get_origin(kind) is Sequence
    return replace(
        setting,
        name=name,
        help=setting.help.replace("{usual}", f"{setting.usual}".removesuffix(".0")),
        type=get_args(kind)[0] if repeats else kind,
        default=default,
        choices=get_args(kind) if get_origin(kind) is Literal else (),
        words=tuple(word for part in get_args(hint) if part is not kind for word in _words(part)),
        repeats=repeats,
        option=setting.option or f"--{name.replace('_', '-')}",
        key=setting.key or name,
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Literal, Sequence):
        return hint

    return next((part for part in get_args(hint) if part is not NoneType), hint)


def _words(part: Any) -> tuple[str, ...]:
    return get_args(part) if get_origin(part) is Literal else ()


def settings_by_key(kind: type[Any]) -> Mapping[str, Setting]:
    """Return the settings of a dataclass by their names in files."""
    return {each.key: each for each in settings_of(kind).values()}


def names_of(kind: type[Any], *concerns: Concern) -> tuple[str, ...]:
    """Return the names of the settings of a dataclass, or of those on some subjects."""
    found = settings_of(kind).items()
    return tuple(name for name, each in found if not concerns or each.concerns in concerns)


def given_settings(options: Any, *concerns: Concern) -> dict[str, Any]:
    """Return the given settings of options, or those on some subjects, without the defaults."""
    given = {name: getattr(options, name) for name in names_of(type(options), *concerns)}
    return {name: value for name, value in given.items() if value is not None}


def plain_settings(options: Any) -> dict[str, Any]:
    """Return the given settings of options as JSON data, by their names in files."""
    declared = settings_of(type(options))
    return {declared[name].key: _plain(value) for name, value in given_settings(options).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)

    return list(value) if isinstance(value, tuple) else value


def from_plain(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for a dataclass from what `plain_settings` returned."""
    declared = settings_by_key(kind)
    found: dict[str, Any] = {}
    for key, value in given.items():
        setting = declared.get(key)
        if setting is None:
            found[key] = value
        elif setting.repeats:
            found[setting.name] = (value,) if isinstance(value, str) else tuple(value)
        else:
            found[setting.name] = Path(value) if setting.type is Path else value

    return found


def problem_with(setting: Setting, value: Any) -> str | None:
    """Return the problem with the value of a setting; None if it is valid."""
    if not setting.repeats:
        return _problem_with_one(setting, value)
    if not isinstance(value, (list, tuple)):
        return f"must be a list of texts, got {_shown(setting, value)}"

    return next(filter(None, (_problem_with_one(setting, item) for item in value)), None)


def _problem_with_one(setting: Setting, value: Any) -> str | None:
    if isinstance(value, str) and value in setting.words:
        return None
    if setting.choices:
        is_one = isinstance(value, str) and value in setting.choices
        return None if is_one else f"must be one of {', '.join(setting.choices)}, got {value!r}"

    kinds, in_words = _KINDS[setting.type]
    if not isinstance(value, kinds) or (isinstance(value, bool) and setting.type is not bool):
        return f"must be {' or '.join((in_words, *setting.words))}, got {_shown(setting, value)}"
    if isinstance(value, (int, float)):
        return _beyond(setting, value)

    return _problem_with_words(setting, str(value))


def _problem_with_words(setting: Setting, text: str) -> str | None:
    if setting.name == "key" and not re.fullmatch("[A-Z_][A-Z0-9_]*", text):
        # it may be the key itself, given by mistake, which must not be shown
        return (
            "must be the name of the environment variable that holds the key, in capital "
            "letters, such as OPENAI_API_KEY; the given value is not shown"
        )

    if setting.name == "keep_alive" and duration(text) is None:
        return f"must be a duration such as 5m or 1h30m, or a number of seconds, got {text!r}"
    if "\0" in text:
        return f"must hold no NUL, got {brief(text)}"

    return problem_with_text(text) or (
        _problem_with_host(text) if setting.name == "hosts" else None
    )


_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+")


def duration(text: str) -> str | float | None:
    """Return a duration as Ollama takes it: a number of seconds, or Go's text; None if neither."""
    try:
        seconds = float(text)
    except ValueError:
        return text if _DURATION.fullmatch(text) else None
    return seconds if isfinite(seconds) else None


def _problem_with_host(host: str) -> str | None:
    try:
        check_address(full_address(host))
    except FieldValueError as error:
        return str(error).removeprefix("host ")

    return None


def _shown(setting: Setting, value: Any) -> str:
    if not setting.secret or isinstance(value, (int, float)):
        return brief(value)
    return brief(str(Address.of(value))) if isinstance(value, str) else type(value).__name__


_KINDS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    str: ((str,), "a text"),
    Path: ((str, Path), "the name of a file"),
}
"""The allowed types of a setting's value by the type of its field, and their names."""


def problem_with_text(text: str) -> str | None:
    """Return why ``run.json`` could not hold a text; None if it can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"must be valid UTF-8, for run.json; got {text!a}"

    return None


def _beyond(setting: Setting, value: float) -> str | None:
    if not isfinite(value):
        return f"must be a finite number, got {value}"

    bounds = []
    if setting.least is not None and value < setting.least:
        bounds.append(f"at least {setting.least}")
    if setting.above is not None and value <= setting.above:
        bounds.append(f"above {setting.above}")
    if setting.most is not None and value > setting.most:
        bounds.append(f"at most {setting.most}")

    return f"must be {' and '.join(bounds)}, got {value!r}" if bounds else None


def setting(concerns: Concern, help: str, *, default: Any = None, **said: Any) -> Any:  # noqa: A002
    """Return a field of a dataclass that is a setting; ``said`` are arguments of `Setting`."""
    return field(default=default, metadata={_SETTING: Setting(concerns, help, **said)})


def meant(setting: Setting, given: Any) -> Any:
    """Return the value of a setting in its stored form."""
    # a single text stands for a list of one
    if setting.repeats and isinstance(given, str):
        return (given,)
    if isinstance(given, bool) and setting.choices[:2] == ("false", "true"):
        return str(given).lower()
    if setting.name == "keep_alive" and isinstance(given, (int, float)):
        return str(given)

    return given


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The settings that may differ between the agents of a run, and change during it.

    None stands for the default, or for the run's setting.
    """

    model: str | None = setting(
        "model",
        "Model to ask, as the server lists it. The text may include the kind of server and its "
        "hosts, separated by commas: ollama:llama3.2@127.0.0.1, or "
        "openai:llama3.2@http://gpu1:8000.",
    )
    hosts: Sequence[str] | None = setting(
        "model",
        "Server; by default Ollama's http://127.0.0.1:11434. Repeat it for several servers. "
        "Names and passwords in it are not saved: to resume a run, give them again, or set "
        "OLLAMA_HOST.",
        metavar="URL",
        option="--host",
        key="host",
        secret=True,
    )
    server: Server | None = setting(
        "model",
        "Kind of server: ollama (the default), or openai for any server with OpenAI's API (vLLM, "
        "llama.cpp, LM Studio), named by --host.",
        option="--reasoner",
    )
    key: str | None = setting(
        "model",
        "Environment variable that holds the server's key. For servers with OpenAI's API, "
        "OPENAI_API_KEY by default; if that is not set, no key is sent.",
        metavar="VARIABLE",
        option="--key-variable",
    )
    price_in: float | None = setting(
        "price",
        "Price of a million tokens that the model reads, in any currency.",
        least=0,
        metavar="PRICE",
    )
    price_out: float | None = setting(
        "price",
        "Price of a million tokens that the model writes, thoughts included.",
        least=0,
        metavar="PRICE",
    )
    mode: Mode | None = setting(
        "decision",
        "decision asks for probabilities, chat for the name of an option, and auto for "
        "probabilities if server and model give them.",
    )
    pick: Pick | None = setting(
        "decision", "Draw from the probabilities, or take the most likely option."
    )
    think: Think | None = setting(
        "request",
        "Whether the model may think before it answers; some models accept only low, medium or "
        "high. By default, the server decides.",
    )
    temperature: float | None = setting(
        "request",
        "Sampling temperature of the model; 0 (the default) always takes the most likely token. "
        "At any other, equal questions are asked for each agent, with seeds of their own.",
        usual=0.0,
        least=0,
    )
    concurrency: int | None = setting(
        "request",
        "Number of concurrent questions for each server; {usual} by default.",
        usual=4,
        least=1,
    )
    timeout: float | None = setting(
        "request",
        "Seconds to wait for one reply; {usual} by default.",
        usual=60.0,
        least=0.01,
    )
    patience: float | None = setting(
        "request",
        "Seconds to wait for a failing server before decisions fall back; 60 by default, 0 not "
        "to wait.",
        usual=0.0,
        least=0,
    )

    def __post_init__(self) -> None:
        """Refuse invalid values, and hide secrets."""
        for name, setting in settings_of(type(self)).items():
            value = meant(setting, getattr(self, name))
            if value is None:
                continue
            if (problem := problem_with(setting, value)) is not None:
                raise InputError(problem, field=name)
            if setting.repeats:
                value = tuple(map(Address.of, value) if setting.secret else value)

            object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class RunSettings(AgentSettings):
    """The settings of a model for a whole run, besides those that may differ in it."""

    attempts: int | None = setting(
        "request",
        "Maximum number of requests for one question, if failures are temporary; {usual} by "
        "default, 1 for no retries.",
        usual=3,
        least=1,
        is_option=False,
    )
    load_timeout: float | None = setting(
        "request",
        "Seconds to wait for the model to load; {usual} by default.",
        usual=600.0,
        least=0.01,
        is_option=False,
    )
    keep_alive: str | None = setting(
        "request",
        "How long Ollama keeps the model loaded, as in 5m, or in seconds; -1 for ever. {usual} by "
        "default.",
        usual="30m",
        is_option=False,
    )
    max_reply_bytes: int | None = setting(
        "request",
        "Maximum size of a decoded reply in bytes; 1 MiB by default.",
        usual=1024 * 1024,
        least=1,
        is_option=False,
    )
    seed: int | None = setting(
        "model",
        "Seed for the model's sampling; by default that of the run.",
        usual=0,
        key="sampling_seed",
        is_option=False,
    )
    window: int | None = setting(
        "request",
        "Maximum tokens of prompt and reply together; a prompt that does not fit is not sent. "
        "Ollama is told (num_ctx); other servers have their own window. By default, the server's.",
        least=2,
        metavar="TOKENS",
    )
    reply_tokens: int | None = setting(
        "request",
        "Maximum tokens of a reply, including thoughts. By default a quarter of --window, or "
        "without it no limit.",
        least=1,
        metavar="TOKENS",
    )
    max_calls: int | None = setting("spending", "Maximum number of requests in the run.", least=1)
    max_tokens: int | None = setting("spending", "Maximum number of tokens in the run.", least=1)
    deadline: float | None = setting(
        "spending", "Seconds after which the run asks no more questions.", least=0.01
    )
    cache: Path | None = setting(
        "spending", "File to keep answers in, and to reuse them from.", metavar="FILE"
    )
    stop_at_fallbacks: float | Literal["never"] | None = setting(
        "decision",
        "Stop the run, so that it can be resumed, if this share (0 to 1) of the last 200 "
        "decisions fell back, or never. 0.5 by default, not counting fallbacks after the budget "
        "was spent.",
        above=0,
        most=1,
        metavar="SHARE",
    )
    prompt: str | None = setting(
        "decision",
        "Template of the prompt, with {fields} such as {name}, {agent.age} and {situation}.",
        metavar="FILE",
        is_file=True,
    )
    attributes: Sequence[str] | None = setting(
        "decision",
        "Attributes of the agents to include in the prompt, separated by commas.",
        metavar="NAMES",
        has_commas=True,
    )
    remember: int | None = setting(
        "decision",
        "Number of things an agent remembers when it decides; none by default.",
        least=1,
    )
    remember_tokens: int | None = setting(
        "decision",
        "Maximum tokens of what it remembers; the oldest are dropped. 400 by default.",
        least=1,
    )
    reasons: bool | None = setting(
        "decision", "Ask for a reason with the choice, and log it. Decision models give none."
    )
    option_order: OptionOrder | None = setting(
        help="Order of the options in the prompt: that of the chart, or shuffled (the default) "
        "in a rotation that is drawn for each decision, since models prefer certain letters and "
        "places.",
        concerns="decision",
    )
    record_prompts: bool | None = setting(
        "keeping",
        "Keep every prompt and reply in prompts.jsonl.gz beside the log, for 'prism log "
        "decision'. The file holds names, traits, posts and everything else that agents are "
        "told; only you can read it.",
    )


class RequestSettings(TypedDict, total=False):
    """The settings of requests, as a pool takes them; its hosts have them all, filled in."""

    concurrency: int
    timeout: float
    load_timeout: float
    attempts: int
    patience: float | None
    temperature: float
    seed: int
    think: bool | str | None
    keep_alive: str
    max_reply_bytes: int
    window: int | None
    reply_tokens: int | None
    key: str | None


def filled_in(given: Mapping[str, Any]) -> RequestSettings:
    """Return all settings of requests, with the usual values for those that are not given.

    Raises:
        FieldValueError: If one is invalid; the message names it.
        TypeError: If one is unknown.
    """
    declared, found = settings_of(RunSettings), RequestSettings()
    names = RequestSettings.__annotations__.keys()
    if unknown := given.keys() - names:
        raise TypeError(f"{min(unknown)} is not a setting of requests: use {', '.join(names)}")
    for name in names:
        value: Any = given.get(name)
        # servers have words of their own for how much a model may think; None leaves it to them
        is_open = name == "think" and name in given
        if value is None and not is_open:
            value = declared[name].usual
        elif not is_open and (problem := problem_with(declared[name], value)) is not None:
            raise FieldValueError(f"{name} {problem}")
        found[name] = value  # type: ignore[literal-required]

    found["reply_tokens"] = _reply_room(found["window"], found["reply_tokens"])
    return found


def _reply_room(window: int | None, tokens: int | None) -> int | None:
    """Return the tokens that a reply may have; by default a quarter of the window, if known."""
    if window is None:
        return tokens
    if tokens is not None and tokens >= window:
        raise FieldValueError(f"reply_tokens must be below the window of {window}, got {tokens}")
    return tokens or max(1, window // _REPLY_SHARE)


@dataclass(frozen=True)
class WriterSettings:
    """The settings of a model that writes the texts of a run."""

    model: str | None = setting(
        "model",
        "Model that writes, if other than the one that decides.",
        is_option=False,
    )
    max_length: int = setting(
        "request",
        "Maximum length of a text in characters; longer ones are cut. 280 by default.",
        option="--writer-length",
        least=1,
        default=280,
    )
    language: str | None = setting(
        "request", "Language of the texts, such as German.", option="--writer-language"
    )
    prompt: str | None = setting(
        "request",
        "Template of the writer's prompt in a feed, with {fields} such as {task}, {thread} and "
        "{reason}.",
        option="--writer-prompt",
        metavar="FILE",
        is_file=True,
    )
