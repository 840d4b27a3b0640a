"""Components: traits, behaviors and goals, inline or each in a file of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prism.errors import InputError
from prism.files._source import Source, Where
from prism.files._yaml import MAX_CHARACTERS, yaml_text
from prism.workflow._document._declarations import ComponentDeclaration, ComponentsDeclaration
from prism.workflow._document._definition import Component, Origin
from prism.workflow._document._problems import WorkflowProblems

_PLAIN_NAME = re.compile(r"[\w-][\w .-]*")
_ENDINGS = (".yaml", ".yml")


class ComponentReader:
    """Reads the components that one workflow names, each of their files once.

    Args:
        folder: Where the files are; None for a workflow that has no place.
        problems: Takes what is wrong.

    Attributes:
        files: The files that were read.
    """

    def __init__(self, folder: Path | None, problems: WorkflowProblems) -> None:
        self.files: list[Path] = []
        self._folder = folder
        self._problems = problems
        self._characters = 0
        self._known: dict[Path, ComponentDeclaration | None] = {}
        self._names = cache(_names_in)

    def components(
        self, places: Iterable[tuple[Where, ComponentsDeclaration]]
    ) -> tuple[Component, ...]:
        """Return the traits, behaviors and goals, each kind in the order in which it names them.

        Args:
            places: Where ``components`` stands, and what stands there.
        """
        given = list(places)
        return tuple(
            _component(*found)
            for kind in ("traits", "behaviors", "goals")
            for where, declared in given
            for found in self._of_kind(kind, getattr(declared, kind), (*where, kind))
        )

    def _of_kind(
        self, kind: str, given: Any, where: Where
    ) -> Iterator[tuple[str, ComponentDeclaration, Origin]]:
        if isinstance(given, Mapping):
            for name, item in given.items():
                yield name, item, Origin(None, (*where, name))
            return

        for number, name in enumerate(given):
            if self._problems.is_full:
                return

            path = self._path(kind, name, (*where, number))
            if path is None:
                continue
            if path not in self._known:
                self._known[path] = self._of_file(path, (*where, number))

            found = self._known[path]
            if found is not None:
                yield name, found, Origin(str(path))

    def _path(self, kind: str, name: str, where: Where) -> Path | None:
        """Return the file of a component; None, with the reason noted, if there is none."""
        if not _PLAIN_NAME.fullmatch(name):
            self._problems.add(where, f"{name!r} is not the name of a file", "component_name")
            return None

        folders = () if self._folder is None else (self._folder, self._folder / "components")
        for folder in folders:
            for file in (f"{name}{ending}" for ending in _ENDINGS):
                if file in self._names(folder / kind):
                    return folder / kind / file

        place = "this text" if self._folder is None else str(self._folder)
        message = f"there is no component {kind}/{name}.yaml in {place}"
        # the prompts still stand without it
        self._problems.add(where, message, "missing_component", severity="warning")

        return None

    def _of_file(self, path: Path, where: Where) -> ComponentDeclaration | None:
        try:
            text = yaml_text(path)
            self._characters += len(text)
            if self._characters > MAX_CHARACTERS:
                problem = f"the components have more than {MAX_CHARACTERS:,} characters in total"
                self._problems.add(where, problem, "component")
                return None
            source = Source.parse(text, "yaml", path=path)
        except InputError as error:
            self._problems.add(where, str(error), "component")
            return None

        self.files.append(path)
        own = self._problems.of_file(source)
        try:
            return ComponentDeclaration.model_validate(source.value)
        except ValidationError as error:
            own.add_shape(error, ComponentDeclaration)
            return None


def _names_in(folder: Path) -> frozenset[str]:
    """Return the names of the files in a folder: looked up once, however many are named."""
    try:
        with os.scandir(folder) as found:
            return frozenset(entry.name for entry in found if entry.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def _component(name: str, declared: ComponentDeclaration, origin: Origin) -> Component:
    return Component(
        name=declared.name or name,
        inject_into=tuple(declared.inject_into),
        fragment=declared.prompt_fragment,
        requires_context=tuple(declared.requires_context),
        origin=origin,
    )
