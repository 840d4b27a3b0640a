"""Treatments as tables of a file or a plan: read, and refused by line and key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from prism.errors import InputError
from prism.files._toml import KeyPath, TomlFile
from prism.worlds._fields import is_a, words_of_type
from prism.worlds._kinds import parts_of
from prism.worlds._switch_model import SwitchModel
from prism.worlds._treatments import SetParameters, Treatment, settings_of
from prism.worlds._world import World

OWN = "own"
"""The kind of a table that names a treatment of the world's own class."""

TABLE = "treatment"
"""What the tables of a file are called."""

OF_ALL: Sequence[type[Treatment]] = (SetParameters, SwitchModel)
"""Ready-made treatments of every world."""

Refuse = Callable[[str, KeyPath], InputError]
"""Returns an error about a key of a table: the problem, and where the key stands."""


def treatment_classes(cls: type[World[Any]]) -> dict[str, type[Treatment]]:
    """Return the classes of treatments that a world knows, by their kinds."""
    own = [each for base in cls.__mro__ for each in vars(base).get("treatment_classes", ())]
    return {each.kind: each for each in (*OF_ALL, *own)}


def read_treatment_file(
    path: Path, cls: type[World[Any]], *, round_number: int | None = None
) -> list[str | Treatment]:
    """Read a TOML file of treatments: a list of tables ``[[treatment]]``.

    Args:
        path: The file.
        cls: The world's class.
        round_number: The round of tables that do not say theirs; without it they have to.

    Raises:
        InputError: If it cannot be read, or says what cannot be; names line and key.
    """
    file = TomlFile.read(path)
    for name in file.data:
        if name != TABLE:
            raise file.error(f"is unknown: the file holds tables [[{TABLE}]]", (name,))

    tables = file.data.get(TABLE, [])
    if not isinstance(tables, list) or not tables:
        raise file.error(f"must hold tables [[{TABLE}]], each with a kind", (TABLE,))

    return read_treatments(
        tables,
        cls,
        lambda problem, keys: file.error(problem, (TABLE, *keys)),
        round_number=round_number,
    )


def read_treatments(
    tables: Sequence[Any],
    cls: type[World[Any]],
    refuse: Refuse,
    *,
    round_number: int | None = None,
) -> list[str | Treatment]:
    """Read tables of treatments; those of the world's own class become ``name@round``.

    Args:
        tables: The tables, as TOML or JSON has them; a text such as ``warning@12`` is one, too.
        cls: The world's class.
        refuse: Returns an error about a key; keys begin with the table's place.
        round_number: The round of tables that do not say theirs; without it they have to.

    Raises:
        InputError: As ``refuse`` makes it, at the first thing that cannot be.
    """
    found: list[str | Treatment] = []
    for place, given in enumerate(tables):
        if isinstance(given, str):
            found.append(given)
        elif isinstance(given, dict):
            table = given if round_number is None else {"round": round_number, **given}
            found.append(_read(table, cls, place, refuse))
        else:
            raise refuse(f"must be a table, got {given!r}", (place,))

    return found


def treatments_in(config: Any, cls: type[World[Any]], path: Path) -> tuple[Any, ...]:
    """Read the tables that ``run.json`` has of treatments.

    Raises:
        InputError: If it has been changed into what cannot be.
    """

    def refuse(problem: str, keys: KeyPath) -> InputError:
        names = [str(key) for key in keys if isinstance(key, str)]
        return InputError(problem, path=path, field=".".join(["treatments", *names]))

    if not isinstance(config, list):
        raise refuse(f"must be a list, got {config!r}", ())

    return tuple(read_treatments(config, cls, refuse))


def tables_of(treatments: Iterable[str | Treatment]) -> list[Any]:
    """Return treatments as ``run.json`` has them: texts and tables."""
    return [each if isinstance(each, str) else each.to_table() for each in treatments]


def _read(
    table: Mapping[str, Any], cls: type[World[Any]], place: int, refuse: Refuse
) -> str | Treatment:
    kind = table.get("kind")
    if kind == OWN:
        return _read_own(table, cls, place, refuse)

    classes = treatment_classes(cls)
    if not isinstance(kind, str) or kind not in classes:
        known = [*classes, OWN]
        said = "is missing" if kind is None else f"cannot be {kind!r}{_instead(kind, known)}"
        raise refuse(f"{said}: there are {', '.join(known)}", (place, "kind"))

    made = classes[kind]
    keys = {each.name: each for each in settings_of(made)}
    given = {name: value for name, value in table.items() if name != "kind"}
    for name, value in given.items():
        if name not in keys:
            raise refuse(_unknown(name, kind, [*keys]), (place, name))
        given[name] = _value(made, name, value, place, refuse)

    for name, each in keys.items():
        if name not in given and _is_required(each):
            raise refuse("is missing", (place, name))

    try:
        return made(**given, place=_place(refuse, place))
    except InputError as error:
        name = error.field or "kind"
        raise refuse(error.problem, (place, *name.split("."))) from None


def _place(refuse: Refuse, place: int) -> tuple[str, int | None] | None:
    """Return file and line of a table, as an error about it has them."""
    error = refuse("", (place,))
    return None if error.path is None else (error.path, error.line)


def _read_own(table: Mapping[str, Any], cls: type[World[Any]], place: int, refuse: Refuse) -> str:
    keys = ("treatment", "round")
    for name in table:
        if name not in ("kind", *keys):
            raise refuse(_unknown(name, OWN, list(keys)), (place, name))
    for name, kind in zip(keys, (str, int), strict=True):
        if name not in table:
            raise refuse("is missing", (place, name))
        if not isinstance(table[name], kind) or isinstance(table[name], bool):
            raise refuse(f"must be {_WORDS[kind]}, got {table[name]!r}", (place, name))

    name, number = table["treatment"], table["round"]
    own = list(parts_of(cls).treatments)
    if name not in own:
        known = ", ".join(own) or "none"
        raise refuse(
            f"{cls.__name__} has no treatment {name!r}{_instead(name, own)}: it has {known}",
            (place, "treatment"),
        )
    if number < 1:
        raise refuse(f"must be 1 or more, got {number}", (place, "round"))

    return f"{name}@{number}"


_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def _value(made: type[Treatment], name: str, value: Any, place: int, refuse: Refuse) -> Any:
    hint = get_type_hints(made)[name]
    found = tuple(value) if isinstance(value, list) and is_a(hint, ()) else value
    if not is_a(hint, found):
        raise refuse(f"must be {_in_words(hint)}, got {value!r}", (place, name))

    return found


def _in_words(hint: Any) -> str:
    several = [each for each in get_args(hint) if each is not NoneType]
    if NoneType in get_args(hint):
        return _in_words(several[0])
    if get_origin(hint) is tuple:
        return f"a list, each of which is {_in_words(several[0])}"

    if get_origin(hint) is Literal:
        return words_of_type(hint)

    return _WORDS.get(hint, "a table")


def _is_required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _unknown(name: str, kind: str, known: Sequence[str]) -> str:
    return (
        f"is unknown{_instead(name, known)}: a treatment of kind {kind} has the keys "
        f"{', '.join(known)}"
    )


def _instead(name: Any, known: Sequence[str]) -> str:
    close = get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
