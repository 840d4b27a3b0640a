"""Components: traits, goals and phases, inline or each in a file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prism.errors import InputError
from prism.files._source import Source, Where
from prism.files._yaml import yaml_text
from prism.workflow._document._declarations import (
    ComponentDeclaration,
    ComponentsDeclaration,
    PhaseDeclaration,
)
from prism.workflow._document._definition import Component, Origin
from prism.workflow._document._problems import WorkflowProblems

_PLAIN_NAME = re.compile(r"[\w-][\w .-]*")


@dataclass(frozen=True, slots=True)
class Phase:
    """A step that several workflows share.

    Args:
        step: The step, as plain data.
        origin: Where it is written.
    """

    step: Mapping[str, Any]
    origin: Origin


@dataclass(slots=True)
class Components:
    """The components that a workflow names.

    Args:
        fragments: Traits, then goals, as they are named.
        phases: Steps by the phase's name.
    """

    fragments: tuple[Component, ...] = ()
    phases: dict[str, Phase] = field(default_factory=dict)


def read_components(
    places: Iterable[tuple[Where, ComponentsDeclaration | None]],
    folder: Path | None,
    problems: WorkflowProblems,
    files: list[Path],
) -> Components:
    """Return the components that are named in a file.

    Args:
        places: Where ``components`` may stand, and what stands there.
        folder: Where the components' files are; None for a text that has no place.
        problems: Takes what is wrong.
        files: Takes the files that are read.
    """
    found = Components()
    given = [(where, declared) for where, declared in places if declared is not None]
    for kind in ("traits", "goals"):
        for where, declared in given:
            read = _read(kind, getattr(declared, kind), (*where, kind), folder, problems, files)
            found.fragments += tuple(_component(*each) for each in read)

    for where, declared in given:
        read = _read("phases", declared.phases, (*where, "phases"), folder, problems, files)
        found.phases.update((name, Phase(_phase(name, item), at)) for name, item, at in read)

    return found


def _read(
    kind: str,
    given: Any,
    where: Where,
    folder: Path | None,
    problems: WorkflowProblems,
    files: list[Path],
) -> list[tuple[str, Any, Origin]]:
    if isinstance(given, Mapping):
        return [(name, item, Origin(None, (*where, name))) for name, item in given.items()]

    found = []
    for number, name in enumerate(given):
        path = _named_file(kind, name, (*where, number), folder, problems)
        if path is None:
            continue

        files.append(path)
        item = _from_file(kind, path, (*where, number), problems)
        if item is not None:
            found.append((name, item, Origin(str(path))))

    return found


def _named_file(
    kind: str, name: str, where: Where, folder: Path | None, problems: WorkflowProblems
) -> Path | None:
    """Return the file of a component; None, with the reason noted, if there is none."""
    if not _PLAIN_NAME.fullmatch(name):
        problems.add(where, f"{name!r} is not the name of a file", "component_name")
        return None

    path = _path_of(kind, name, folder)
    if path is None:
        place = "this text" if folder is None else str(folder)
        message = f"there is no component {kind}/{name}.yaml in {place}"
        # the prompts still stand without it; only a phase leaves a step without its body
        problems.add(where, message, "missing_component", severity="warning")

    return path


def _from_file(
    kind: str, path: Path, where: Where, problems: WorkflowProblems
) -> ComponentDeclaration | PhaseDeclaration | None:
    try:
        source = Source.parse(yaml_text(path), "yaml", path=path)
    except InputError as error:
        problems.add(where, str(error), "component")
        return None

    own = problems.of_file(source)
    declared = PhaseDeclaration if kind == "phases" else ComponentDeclaration
    try:
        return declared.model_validate(source.value)
    except ValidationError as error:
        own.add_shape(error, declared)
        return None


def _path_of(kind: str, name: str, folder: Path | None) -> Path | None:
    if folder is None:
        return None

    candidates = [
        folder / middle / kind / f"{name}{ending}"
        for middle in (".", "components")
        for ending in (".yaml", ".yml")
    ]
    return next((path for path in candidates if path.is_file()), None)


def _component(name: str, declared: ComponentDeclaration, origin: Origin) -> Component:
    return Component(
        name=declared.name or name,
        inject_into=tuple(declared.inject_into),
        fragment=declared.prompt_fragment,
        requires_context=tuple(declared.requires_context),
        origin=origin,
    )


def _phase(name: str, declared: PhaseDeclaration) -> Mapping[str, Any]:
    """Return a phase as a step."""
    if declared.step is not None:
        return {"name": declared.name or name, **declared.step}

    return {"name": declared.name or name, "type": "llm", "prompt": declared.prompt_fragment or ""}
