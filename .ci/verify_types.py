"""Read what ``pyright --verifytypes --outputjson`` found, and fail where a type is not known.

The programs of prism.examples are left out: they are written to be copied, as short as a
user's own, and leave to inference what ``mypy --strict`` infers.
"""

import json
import sys

COPIED = "prism.examples"

symbols = json.load(sys.stdin)["typeCompleteness"]["symbols"]
unknown = [
    symbol["name"]
    for symbol in symbols
    if symbol["isExported"]
    and (not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"])
    and not symbol["name"].startswith(COPIED)
]
sys.stderr.writelines(f"without a known type: {name}\n" for name in unknown)
sys.exit(1 if unknown or not symbols else 0)
