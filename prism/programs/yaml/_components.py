"""Components: traits, behaviors and goals, inline or in files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from prism.errors import InputError
from prism.files._source import Source, Where
from prism.files._yaml import MAX_CHARACTERS, yaml_text
from prism.files.declarations import shaped
from prism.programs.yaml._declarations import ComponentDeclaration, ComponentsDeclaration
from prism.programs.yaml._definition import Component
from prism.programs.yaml._problems import WorkflowProblems

_PLAIN_NAME = re.compile(r"[\w-][\w .-]*")
_ENDINGS = (".yaml", ".yml")


class ComponentReader:
    """Reads the components of one workflow, each file once.

    Args:
        folder: Where the files are; None for a workflow without a file.
        problems: Takes what is wrong.
    """

    def __init__(self, folder: Path | None, problems: WorkflowProblems) -> None:
        self._folder = folder
        self._problems = problems
        self._characters = 0
        self._known: dict[Path, ComponentDeclaration | None] = {}
        self._names = cache(_names_in)

    def components(self, places: Mapping[Where, ComponentsDeclaration]) -> Iterator[Component]:
        """Yield the traits, behaviors and goals, each kind in the order in which it is named.

        Args:
            places: What is declared, by where it stands.
        """
        for kind in ("traits", "behaviors", "goals"):
            for top, declared in places.items():
                given, where = getattr(declared, kind), (*top, kind)
                if isinstance(given, Mapping):
                    for name, item in given.items():
                        yield Component(item.name or name, item, where=(*where, name))
                else:
                    yield from self._named(kind, given, where)

    def _named(self, kind: str, names: Iterable[str], where: Where) -> Iterator[Component]:
        for number, name in enumerate(names):
            if self._problems.is_full:
                return

            path = self._path(kind, name, (*where, number))
            if path is None:
                continue
            if path not in self._known:
                self._known[path] = self._of_file(path, (*where, number))

            declared = self._known[path]
            if declared is not None:
                yield Component(declared.name or name, declared, str(path))

    def _path(self, kind: str, name: str, where: Where) -> Path | None:
        """Return the file of a component; None, with the reason noted, if there is none."""
        if not _PLAIN_NAME.fullmatch(name):
            self._problems.add(where, f"{name!r} is not the name of a file", "component_name")
            return None

        folders = () if self._folder is None else (self._folder, self._folder / "components")
        for folder in folders:
            for ending in _ENDINGS:
                if f"{name}{ending}" in self._names(folder / kind):
                    return folder / kind / f"{name}{ending}"

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

        return shaped(ComponentDeclaration, source.value, self._problems.of_file(source))


def _names_in(folder: Path) -> frozenset[str]:
    """Return the names of the files in a folder: looked up once, however many are named."""
    files = folder.iterdir() if folder.is_dir() else ()
    return frozenset(file.name for file in files if file.is_file())
