"""The settings of a model, each declared once: its name, type, default, help and bounds.

A setting is a field of `ModelSettings`, `prism.runs.ModelOptions` or `prism.runs.WriterOptions`
whose annotation carries a `Setting`. Whatever needs to know more about the settings than their
values asks `settings_of`: the check of options made in Python, the readers of a file of models, of
treatments and of ``run.json``, and the command line. ::

    timeout = settings_of(ModelOptions)["timeout"]
    timeout.name        # "timeout"
    timeout.type        # float; of a field that may be None, the other type
    timeout.default     # None
    timeout.help        # "Seconds to wait for one reply. 60 by default."
    timeout.least       # 0.01, the smallest valid number; `above` and `most` are bounds, too
    timeout.choices     # () or the texts to choose from, where the type is a Literal
    timeout.option      # "--timeout"
    timeout.metavar     # None or, for example, "URL"
    timeout.panel       # "Asking a model" or "Keeping the run", the group in ``--help``
    timeout.repeats     # True if the option may be given several times: the field is a tuple
    timeout.has_commas  # True if one option may hold several values, with commas between them
    timeout.is_flag     # True if the option takes no value: the field is a bool
    timeout.is_file     # True if the option names a file, whose text is the value
    timeout.secret      # True if a part of the value must never be shown
    timeout.concerns    # what it is about, see `Concern`

For a Typer option, its parameter is named ``name`` (``prompt``, an option that names a file, is a
``Path``), its annotation is ``type | None`` or, if it ``repeats``, ``list[type] | None``, and its
default None, or False for a flag: a default that is named in the help is applied later, so that a
value that was given can be told from one that was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from reprlib import repr as brief
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from prism.errors import InputError
from prism.runs._credentials import Address

Mode = Literal["auto", "decision", "chat"]
Pick = Literal["draw", "argmax"]
Think = Literal["false", "true", "low", "medium", "high"]
Server = Literal["ollama", "openai"]

Concern = Literal["model", "request", "decision", "spending", "keeping"]
"""What a setting is about: which model is asked and where, how a request to it is made, how it
decides (which says nothing to a model that only writes), what the run may spend, what is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is declared of a setting beside its name, type and default, which its field has.

    Args:
        help: What it does, as ``--help`` shows it.
        concerns: What it is about.
        least: The smallest valid number.
        above: What a number must be above.
        most: The largest valid number.
        metavar: What ``--help`` calls its value.
        option: Its option on a command line; ``--`` and its name by default.
        has_commas: Whether one option may hold several values, with commas between them.
        is_file: Whether its option names a file, whose text is the value.
        secret: Whether a part of its value must never be shown.
        name: Name of the field; `settings_of` fills in this and what follows.
        type: Type of the field, or of one item if it is a tuple; never None.
        default: Default of the field; None if it has to be given.
        choices: The texts to choose from.
        repeats: Whether the field is a tuple.
    """

    help: str
    concerns: Concern
    least: float | None = None
    above: float | None = None
    most: float | None = None
    metavar: str | None = None
    option: str = ""
    has_commas: bool = False
    is_file: bool = False
    secret: bool = False
    name: str = ""
    type: Any = str
    default: Any = None
    choices: tuple[str, ...] = ()
    repeats: bool = False

    @property
    def is_flag(self) -> bool:
        """Whether its option takes no value."""
        return self.type is bool

    @property
    def panel(self) -> str:
        """Name of the group of options that ``--help`` shows it in."""
        return "Keeping the run" if self.concerns == "keeping" else "Asking a model"


_FOUND: dict[type[Any], Mapping[str, Setting]] = {}
"""The settings of the dataclasses that somebody has asked for."""


def settings_of(kind: type[Any]) -> Mapping[str, Setting]:
    """Return the settings that a dataclass declares or inherits, by name, in their order."""
    if kind not in _FOUND:
        _FOUND[kind] = _declared(kind)

    return _FOUND[kind]


def _declared(kind: type[Any]) -> Mapping[str, Setting]:
    inherited: dict[str, Setting] = {}
    for base in kind.__mro__[:0:-1]:
        inherited |= settings_of(base) if is_dataclass(base) else {}

    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for each in fields(kind):
        hint = hints[each.name]
        # a field that is declared again, such as one that has to be given, is the same setting
        own = (given for given in getattr(hint, "__metadata__", ()) if isinstance(given, Setting))
        setting = next(own, inherited.get(each.name))
        if setting is not None:
            default = None if each.default is MISSING else each.default
            found[each.name] = _filled_in(setting, each.name, hint, default)

    return found


def _filled_in(setting: Setting, name: str, hint: Any, default: Any) -> Setting:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    kind = next((part for part in get_args(plain) if part is not NoneType), plain)
    if get_origin(plain) in (Literal, tuple):
        kind = plain

    repeats = get_origin(kind) is tuple
    return replace(
        setting,
        name=name,
        type=get_args(kind)[0] if repeats else kind,
        default=default,
        choices=get_args(kind) if get_origin(kind) is Literal else (),
        repeats=repeats,
        option=setting.option or f"--{name.replace('_', '-')}",
    )


def names_of(kind: type[Any], *concerns: Concern) -> tuple[str, ...]:
    """Return the names of the settings of a dataclass, or of those about some things."""
    found = settings_of(kind).items()
    return tuple(name for name, each in found if not concerns or each.concerns in concerns)


def given_settings(options: Any, *concerns: Concern) -> dict[str, Any]:
    """Return the settings that options say, or those about some things, without the defaults."""
    given = {name: getattr(options, name) for name in names_of(type(options), *concerns)}
    return {name: value for name, value in given.items() if value is not None}


def problem_with(setting: Setting, value: Any) -> str | None:
    """Return what is wrong with the value of a setting; None if it is valid."""
    if setting.repeats:
        if not isinstance(value, (list, tuple)):
            return f"must be a list of texts, got {brief(value)}"
        one = replace(setting, repeats=False)
        return next(filter(None, (problem_with(one, item) for item in value)), None)
    if setting.choices:
        is_one = isinstance(value, str) and value in setting.choices
        return None if is_one else f"must be one of {', '.join(setting.choices)}, got {value!r}"

    kinds, in_words = _KINDS[setting.type]
    if not isinstance(value, kinds) or (isinstance(value, bool) and setting.type is not bool):
        return f"must be {in_words}, got {brief(value)}"
    if isinstance(value, (int, float)):
        return _beyond(setting, value)

    text = str(value)
    return f"must hold no NUL, got {brief(text)}" if "\0" in text else problem_with_text(text)


_KINDS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    str: ((str,), "a text"),
    Path: ((str, Path), "the name of a file"),
}
"""What the value of a setting may be by the type of its field, and that in words."""


def problem_with_text(text: str) -> str | None:
    """Return why ``run.json`` could not hold a text; None if it can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"must be UTF-8, as run.json is; got {text!a}"

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


Hedge = Annotated[
    bool | None,
    Setting(
        help="Put a question a second time when it takes longer than 95 % of the latest did, and a "
        "slot is free. The first answer counts; both requests do for --max-calls.",
        concerns="request",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The settings that may differ between the agents of a run, and in its course.

    None stands for the default, or for what the run says for all.
    """

    model: Annotated[
        str | None, Setting(help="Model to ask, as the server lists it.", concerns="model")
    ] = None
    host: Annotated[
        tuple[str, ...] | None,
        Setting(
            help="Server, by default http://127.0.0.1:11434 of Ollama. Repeat it for several "
            "servers. Names and passwords in it are not kept: with --resume, give it again, or set "
            "OLLAMA_HOST.",
            concerns="model",
            metavar="URL",
            secret=True,
        ),
    ] = None
    server: Annotated[
        Server | None,
        Setting(
            help="What serves the model: ollama, the default, or openai for a server that speaks "
            "OpenAI's API (vLLM, llama.cpp, LM Studio), with --host.",
            concerns="model",
            option="--reasoner",
        ),
    ] = None
    mode: Annotated[
        Mode | None,
        Setting(
            help="Ask a decision model for probabilities, or have a model write its choice; auto "
            "takes decisions where server and model offer them.",
            concerns="decision",
        ),
    ] = None
    pick: Annotated[
        Pick | None,
        Setting(help="Draw from the probabilities, or take the likeliest.", concerns="decision"),
    ] = None
    think: Annotated[
        Think | None,
        Setting(
            help="Whether the model may think before it answers; some take only low, medium or "
            "high. false by default.",
            concerns="request",
        ),
    ] = None
    temperature: Annotated[
        float | None,
        Setting(
            help="Sampling temperature of what the model writes; 0, the default, for the "
            "likeliest.",
            concerns="request",
            least=0,
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        Setting(
            help="Questions under way at once on each server. 4 by default.",
            concerns="request",
            least=1,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        Setting(
            help="Seconds to wait for one reply. 60 by default.", concerns="request", least=0.01
        ),
    ] = None
    patience: Annotated[
        float | None,
        Setting(
            help="Seconds to wait for a server that fails; 0, the default, not to wait.",
            concerns="request",
            least=0,
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse invalid values, and hide what is secret."""
        for name, setting in settings_of(type(self)).items():
            value = getattr(self, name)
            if value is None:
                continue
            if (problem := problem_with(setting, value)) is not None:
                raise InputError(problem, field=name)
            if setting.secret:
                object.__setattr__(self, name, tuple(map(Address.of, value)))


@dataclass(frozen=True, kw_only=True)
class RunSettings(ModelSettings):
    """The settings of a model that hold for a whole run, beside those that may differ in it."""

    hedge: Hedge = None
    max_calls: Annotated[
        int | None, Setting(help="Requests the run may make.", concerns="spending", least=1)
    ] = None
    max_tokens: Annotated[
        int | None, Setting(help="Tokens the run may use.", concerns="spending", least=1)
    ] = None
    deadline: Annotated[
        float | None,
        Setting(help="Seconds for which the run may ask.", concerns="spending", least=0.01),
    ] = None
    cache: Annotated[
        Path | None,
        Setting(
            help="Keep answers in this file, and use those in it.",
            concerns="spending",
            metavar="FILE",
        ),
    ] = None
    stop_at_fallbacks: Annotated[
        float | None,
        Setting(
            help="End the run when this share (0 to 1) of the last 200 decisions fell back; it can "
            "be resumed.",
            concerns="decision",
            above=0,
            most=1,
            metavar="SHARE",
        ),
    ] = None
    prompt: Annotated[
        str | None,
        Setting(
            help="Template of what the model is told, with {fields} such as {name}, {agent.age} "
            "and {situation}.",
            concerns="decision",
            metavar="FILE",
            is_file=True,
        ),
    ] = None
    attributes: Annotated[
        tuple[str, ...] | None,
        Setting(
            help="Attributes of the agents, with commas between them, that the model is told.",
            concerns="decision",
            metavar="NAMES",
            has_commas=True,
        ),
    ] = None
    remember: Annotated[
        int | None,
        Setting(
            help="How many things an agent remembers when it decides. None by default.",
            concerns="decision",
            least=1,
        ),
    ] = None
    remember_tokens: Annotated[
        int | None,
        Setting(
            help="Tokens that these may take; the oldest go. 400 by default.",
            concerns="decision",
            least=1,
        ),
    ] = None
    reasons: Annotated[
        bool | None,
        Setting(
            help="Ask for a reason beside the choice, and log it. Decision models give none.",
            concerns="decision",
        ),
    ] = None
    record_prompts: Annotated[
        bool | None,
        Setting(
            help="Keep every prompt and reply as it was sent, in prompts.jsonl.gz beside the log, "
            "for 'prism log decision'. Names, traits, posts, and whatever else agents are told are "
            "in it; only you may read the file.",
            concerns="keeping",
        ),
    ] = None


@dataclass(frozen=True)
class WriterSettings:
    """The settings of a model that writes the texts of a run."""

    model: Annotated[
        str | None,
        Setting(
            help="Model that writes, if it is another one than --model.",
            concerns="model",
            option="--writer-model",
        ),
    ] = None
    max_length: Annotated[
        int,
        Setting(
            help="Most characters of a text. 280 by default; a longer one is cut.",
            concerns="request",
            option="--writer-length",
            least=1,
        ),
    ] = 280
    language: Annotated[
        str | None,
        Setting(
            help="Language of the texts, such as German.",
            concerns="request",
            option="--writer-language",
        ),
    ] = None
