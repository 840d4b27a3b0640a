"""What the models of fake servers choose and write, without a thought."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from prism.testing import Asked


def varied(asked: Asked) -> str:
    """Choose, for `FakeOllama(choose=)`, one of the options by the prompt; a text has none."""
    options = asked.options or ("Hello.",)
    return options[sum(map(ord, asked.prompt)) % len(options)]


class Filler:
    """Writes, for `FakeOllama(write=)`, what a schema allows.

    Of several values it takes the one that the prompt shows, as small models do, or else the one
    that it took least; a number is the first of the prompt.
    """

    def __init__(self) -> None:
        self._taken: Counter[Any] = Counter()

    def __call__(self, prompt: str, schema: Mapping[str, Any] | None) -> Any:
        """Return an answer."""
        return "So be it." if schema is None else self._fill(schema, prompt)

    def _fill(self, schema: Mapping[str, Any], prompt: str, name: str = "") -> Any:
        if "const" in schema:
            return schema["const"]
        if values := schema.get("enum"):
            return self._one_of(values, prompt, name)
        if either := schema.get("anyOf") or schema.get("oneOf"):
            kinds = {
                each.get("properties", {}).get("type", {}).get("const"): each for each in either
            }
            kind = None if None in kinds else self._one_of([*kinds], prompt, "type")
            return self._fill(kinds.get(kind, either[0]), prompt, name)

        match schema.get("type", "object" * ("properties" in schema)):
            case "object":
                members = schema.get("properties", {}).items()
                return {key: self._fill(member, prompt, key) for key, member in members}
            case "array":
                return [self._fill(schema.get("items", {}), prompt)]
            case "integer" | "number":
                least, most = schema.get("minimum", 0), schema.get("maximum", 100)
                found = re.search(r"\d+", prompt)
                return min(max(int(found[0]) if found else least, least), most)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return "So be it."[: schema.get("maxLength")]

    def _one_of(self, values: list[Any], prompt: str, name: str) -> Any:
        shown = re.findall(rf'(?:<{name}>|"{name}":)\s*"?([\w-]+)', prompt) if name else []
        for value in reversed(shown):
            if value in values:
                return value

        value = min(values, key=lambda each: self._taken[name, each])
        self._taken[name, value] += 1
        return value
