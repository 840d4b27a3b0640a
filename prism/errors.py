"""The exceptions of prism.

Every message names the offender and says what to do. Each class also derives from the built-in
exception that fits, so ``except ValueError`` keeps working::

    PrismError
    ├── DefinitionError (ValueError)      a state enum, transition or chart is not well defined
    ├── FieldValueError (ValueError)      a field of an agent or record is outside its range
    ├── FieldTypeError (TypeError)        a field of an agent has the wrong type
    ├── AgentError (TypeError)            the engine cannot drive an object
    ├── UnknownStateError (ValueError)    an agent is in a state that the chart does not define
    ├── UnknownTriggerError (ValueError)  a strict chart has no transition with that trigger
    ├── RunawayError (RuntimeError)       an action keeps firing on its own agent without end
    ├── ReasonerError (ValueError)        a question has no options, or the answer is not among them
    ├── SimulationError (RuntimeError)    a simulation is used in a way that it does not allow
    ├── TooManyFallbacksError (RuntimeError)   a run ended, as its model failed too often
    ├── ReplayError (LookupError)         the log of an earlier run has no answer to a question
    ├── InputError (ValueError)           a file or argument of the user is wrong
    ├── MissingExtraError (ImportError)   an optional package is needed, and not installed
    └── LLMError                          a language model did not answer
        ├── UnreachableError (ConnectionError)   nothing listens there, or the connection dropped
        │   └── CircuitOpenError                 every host keeps failing, so none is asked now
        ├── TimedOutError (TimeoutError)         no complete answer within the time-out
        ├── OverloadedError                      the server is too busy: 429, 502, 503, 504
        ├── ModelMissingError                    the server does not have the model
        ├── PromptTooLongError                   a prompt does not fit into the model's window
        ├── BadReplyError                        the server's answer is not a usable reply
        │   └── UselessReplyError                what the model wrote is empty or no option
        │       └── DeclinedError                the model, or a filter of its server, declined
        ├── NoProbabilitiesError                 the server gives no log-probabilities
        └── BudgetSpentError                     the run has spent what it may
"""

from __future__ import annotations

from os import PathLike


class PrismError(Exception):
    """Base of all exceptions of prism."""


class DefinitionError(PrismError, ValueError):
    """A state enum, transition or chart is not well defined; the message lists every offender.

    Args:
        problem: The message.
        paths: The offenders in the chart: ``("transitions", 3)``, ``("states", "idle")``.
    """

    def __init__(self, problem: str, *paths: tuple[str | int, ...]) -> None:
        super().__init__(problem)
        self.paths: tuple[tuple[str | int, ...], ...] = paths


class FieldValueError(PrismError, ValueError):
    """A field of an agent or record is outside its range."""


class FieldTypeError(PrismError, TypeError):
    """A field of an agent has the wrong type."""


class AgentError(PrismError, TypeError):
    """The engine cannot drive an object."""


class UnknownStateError(PrismError, ValueError):
    """An agent is in a state that the chart does not define."""


class UnknownTriggerError(PrismError, ValueError):
    """No transition of a strict chart has that trigger."""


class RunawayError(PrismError, RuntimeError):
    """An action keeps firing on its own agent without end."""


class ReasonerError(PrismError, ValueError):
    """A question to a reasoner has no options, or the answer is not among them."""


class SimulationError(PrismError, RuntimeError):
    """A simulation is used in a way that it does not allow."""


class TooManyFallbacksError(PrismError, RuntimeError):
    """A run ended, as its model failed too often; it can be resumed."""


class ReplayError(PrismError, LookupError):
    """The log of an earlier run has no answer to a question."""


class InputError(PrismError, ValueError):
    """A file or argument of the user is wrong.

    Args:
        problem: What is wrong and what to do about it.
        path: The file, if any.
        line: Line number in that file, counted from 1.
        field: Name of the field, key or column.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: PathLike[str] | str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.problem = problem
        self.path: str | None = None if path is None else str(path)
        self.line = line
        self.field = field
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return the message as ``file, line 3, field 'x': problem``."""
        parts = (
            self.path,
            None if self.line is None else f"line {self.line}",
            None if self.field is None else f"field {self.field!r}",
        )
        where = ", ".join(part for part in parts if part)
        return f"{where}: {self.problem}" if where else self.problem


class MissingExtraError(PrismError, ImportError):
    """An optional package is needed, and not installed.

    Args:
        extra: The extra that brings the package.
        package: The package that could not be imported.
    """

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(
            f"the package {package!r} of the extra {extra!r} is not installed: "
            f"run  pip install 'prism-statecharts[{extra}]'  or, in a checkout,  "
            f"pip install '.[{extra}]'"
        )


class LLMError(PrismError):
    """A language model did not give a usable answer.

    Args:
        message: The message.
        host: The server that failed, where known.
        retry_after: Seconds after which the server wants to be asked again, where it says so.
        status: HTTP status of the answer, if it was an error; 500 for an error, or half a reply,
            in an answer of status 200, and 0 where none is known.
    """

    # a subclass with an __init__ of its own has them, too
    host: str | None = None
    retry_after: float | None = None
    status: int = 0

    def __init__(
        self,
        *message: object,
        host: str | None = None,
        retry_after: float | None = None,
        status: int = 0,
    ) -> None:
        super().__init__(*message)
        self.host = host
        self.retry_after = retry_after
        self.status = status


class UnreachableError(LLMError, ConnectionError):
    """Nothing listens at the host, its name does not resolve, or the connection dropped.

    Attributes:
        is_refused: Whether no connection could be made, so that the server has seen no question.
    """

    is_refused: bool = False


class CircuitOpenError(UnreachableError):
    """Every host keeps failing, and has a probe under way, so none is asked now."""


class TimedOutError(LLMError, TimeoutError):
    """The server gave no complete answer within the time-out."""


class OverloadedError(LLMError):
    """The server is too busy to answer now (HTTP 429, 502, 503 or 504)."""


class ModelMissingError(LLMError):
    """The server does not have the model; the message carries the ``ollama pull`` line to type."""


class BadReplyError(LLMError):
    """The server answered, but not with a usable reply."""


class PromptTooLongError(LLMError):
    """A prompt exceeds the model's window: it was not sent, or the server has cut or refused it."""


class UselessReplyError(BadReplyError):
    """The server is well, and what its model wrote is empty or chooses none of the options."""


class DeclinedError(UselessReplyError):
    """The model declined to answer, or a content filter of its server withheld the answer."""


class NoProbabilitiesError(LLMError):
    """The server gives no log-probabilities of a reply's tokens."""


class BudgetSpentError(LLMError):
    """The run has spent the calls, tokens or time that it may."""
