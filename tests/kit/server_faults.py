"""What a model server does wrong, and the error of prism's tree that each fault is."""

from prism.errors import (
    BadReplyError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
    UselessReplyError,
)
from prism.llm._bad_replies import BrokenConnectionError, RefusedError
from prism.testing import Fault

NOT_FOUND = b'{"error": "model \'tiny\' not found"}'
SAID_A_LIST = Fault.status(503, body=b'["busy"]')
FAULTS: list[tuple[str, Fault, type[LLMError], str, type[BaseException]]] = [
    (
        "dropped",
        Fault.drop(),
        UnreachableError,
        "the connection to .* broke",
        BrokenConnectionError,
    ),
    (
        "cut short",
        Fault.drop_midway(),
        UnreachableError,
        "the connection to .* broke",
        BrokenConnectionError,
    ),
    (
        "silent",
        Fault.hang(),
        TimedOutError,
        "no complete reply from tiny at .* within 5 s",
        TimeoutError,
    ),
    ("half a body", Fault.stall(), TimedOutError, "within 5 s", TimeoutError),
    ("slow body", Fault.trickle(), TimedOutError, "within 5 s", TimeoutError),
    *(
        (
            str(code),
            Fault.status(code, "busy"),
            OverloadedError,
            f"answered {code}: busy$",
            RefusedError,
        )
        for code in (429, 502, 503, 504)
    ),
    (
        "no model",
        Fault.status(404, body=NOT_FOUND),
        ModelMissingError,
        "ollama pull tiny$",
        RefusedError,
    ),
    (
        "no path",
        Fault.status(404, body=b"404 page not found"),
        BadReplyError,
        "answered 404: 404 page not found",
        RefusedError,
    ),
    (
        "400",
        Fault.status(400, "bad\nformat"),
        LLMError,
        "answered 400: bad format",
        RefusedError,
    ),
    ("500", Fault.status(500, body=b""), LLMError, "answered 500: ", RefusedError),
    (
        "null error",
        Fault.status(500, body=b'{"error": null}'),
        LLMError,
        "answered 500: ",
        RefusedError,
    ),
    (
        "error object",
        Fault.status(429, body=b'{"error": {"message": "slow down"}}'),
        OverloadedError,
        "answered 429: .*slow down",
        RefusedError,
    ),
    ("error list", SAID_A_LIST, OverloadedError, "answered 503: ", RefusedError),
    (
        "a web page",
        Fault.body(b"<!DOCTYPE html>\n<html><title>Sign&nbsp;in </title></html>"),
        BadReplyError,
        "answered with a web page instead of a reply: check that this",
        ValueError,
    ),
    (
        "a web page that is not there",
        Fault.status(404, body=b"<html><title>404 Not Found</title>This model is not found."),
        BadReplyError,
        "answered 404 with a web page: check that this is the address",
        RefusedError,
    ),
    (
        "a web page that is busy",
        Fault.status(503, body=b"<html>"),
        OverloadedError,
        "answered 503 with a web page$",
        RefusedError,
    ),
    (
        "no such model elsewhere",
        Fault.status(404, body=b'{"error": "The model `tiny` does not exist."}'),
        ModelMissingError,
        "ollama pull tiny$",
        RefusedError,
    ),
    ("not JSON", Fault.body(b"yes"), BadReplyError, "sent an invalid reply", ValueError),
    ("deep", Fault.body(b"[" * 500_000), BadReplyError, "sent an invalid reply", ValueError),
    ("no body", Fault.body(b""), BadReplyError, "sent an invalid reply", ValueError),
    (
        "error with 200",
        Fault.body(b'{"error": "oops"}'),
        BadReplyError,
        "answered with an error instead of a reply: oops$",
        ValueError,
    ),
    (
        "error object with 200",
        Fault.body(b'{"error": {"message": "no\\nroom", "type": "x"}}'),
        BadReplyError,
        "answered with an error instead of a reply: no room$",
        ValueError,
    ),
    ("an array", Fault.body(b"[1]"), BadReplyError, "sent an invalid reply", ValueError),
    ("null", Fault.body(b"null"), BadReplyError, "sent an invalid reply", ValueError),
    (
        "wrong shape",
        Fault.body(b'{"message": {"role": "assistant", "content": 3}}'),
        BadReplyError,
        r"sent an invalid reply \(the content of its message is not text\)",
        ValueError,
    ),
    (
        "error in a stream",
        Fault.body(
            b'{"message": {"role": "assistant", "content": "{"}, "done": false}\n'
            b'{"error": "the model crashed"}\n'
        ),
        BadReplyError,
        "answered with an error instead of a reply: the model crashed$",
        ValueError,
    ),
    ("empty", Fault.says(""), UselessReplyError, "tiny at .* gave an empty reply", type(None)),
]
"""By name: the fault, the class of the error, its message, and the cause."""
