"""What all sections of settings share, and what a run chooses by name: tasks, encoders, matchings, which
register themselves where they are written, in a package above or in another one.

What settings are checked against before any data are read is said here; what else a task, an encoder or a matching
is, its own package says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny
from torch import nn

from graphwright.graphs import Vocabulary
from graphwright.registry import Registry

if TYPE_CHECKING:
    from graphwright.settings.overrides import DataSettings
    from graphwright.settings.schema import Model, Run


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Settings(BaseModel):
    """Base of all sections: frozen, and unknown names are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, coerce_numbers_to_str=True
    )


class SettingsError(ValueError):
    """An unknown setting, a value that it cannot take, or a source that cannot be read: one line."""


@dataclass(frozen=True)
class InputForm:
    """What a task says of its inputs before an encoder is made.

    kind: what they are, such as "picture". size: what an encoder must know of them: pixels to a side, bits,
    adducts, numbers of a vector, words. described: the inputs in words, for an error message. parts: of inputs of
    several kinds together.
    """

    kind: str
    size: int
    described: str = ""
    parts: tuple[InputForm, ...] = ()


class EncoderChoice(Protocol):
    """What settings must know of an encoder.

    reads: kinds of inputs. attends: whether its width is divided among attention heads. owning: whether its tokens
    may stand for nodes.
    """

    reads: tuple[str, ...]
    attends: bool
    owning: bool

    def build(self, form: InputForm, model: Model, /) -> nn.Module:
        """A fresh one, for inputs of this form."""


class MatchingChoice(Protocol):
    """What settings must know of a matching. keeps_order: whether slot i always stands for node i. reads: the
    settings of `matching` that its plans depend on; None: any."""

    keeps_order: bool
    reads: frozenset[str] | None

    def check(self, run: Run, /) -> None:
        """Refuse, with a ValueError that names the settings by their keys, a run that it does not go with."""

    def build(self, run: Run, vocabulary: Vocabulary, slots: int, /) -> nn.Module:
        """A fresh one, for graphs of this vocabulary on so many slots."""


ENCODERS: Registry[EncoderChoice] = Registry("encoder", ("graphwright.models.encoders",))
MATCHINGS: Registry[MatchingChoice] = Registry("matching", ("graphwright.matching",))


@dataclass(frozen=True)
class NameIn:
    """Annotates a field that names something registered: an unknown name is refused, and help lists the known."""

    registry: Registry[Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return {**handler(schema), "enum": list(self.registry.names())}

    def _checked(self, name: str) -> str:
        _ = self.registry[name]
        return name


def encoders_of(inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the encoders that read inputs of one of these kinds, built-in ones first."""
    return tuple(name for name in ENCODERS.names() if set(ENCODERS[name].reads) & set(inputs))


Capacity = Annotated[int, Field(ge=1, le=250)]


class TaskSettings(Settings):
    """What is predicted from what. Each kind of task adds its own settings, and gives `kind` its default."""

    input_kinds: ClassVar[tuple[str, ...]]
    """What its inputs may be, as encoders name what they read, such as picture."""
    default_encoder: ClassVar[str]
    """The encoder to take if nobody says which."""

    kind: str

    @classmethod
    def named_kind(cls) -> str:
        """The kind that these settings are of."""
        return str(cls.model_fields["kind"].default)


class TaskKind(Protocol):
    """What settings need to know of the class of a task; see `tasks.Task`."""

    settings_class: ClassVar[type[TaskSettings]]

    def __init__(self, settings: Any) -> None: ...

    @classmethod
    def settings_for(cls, source: str) -> DataSettings | None:
        """What data alone stand for; None where they are not of this task."""


TASKS: Registry[type[TaskKind]] = Registry("task", ("graphwright.tasks",))
"""Tasks by the kind of their settings."""
DEFAULT_KIND = "coloring"
"""The kind of settings that say none: those older than kinds."""


def task_kind(given: Any) -> str:
    """The kind of a task's settings, given as such or as a mapping."""
    if isinstance(given, Mapping):
        return str(given.get("kind", DEFAULT_KIND))
    return str(getattr(given, "kind", DEFAULT_KIND))


def default_task() -> TaskSettings:
    """Settings of the task that nobody has named."""
    return TASKS[DEFAULT_KIND].settings_class.model_validate({})


def _of_its_kind(given: Any) -> Any:
    """A mapping as settings of its kind; all else is left to pydantic to refuse."""
    if not isinstance(given, Mapping):
        return given
    return TASKS[task_kind(given)].settings_class.model_validate(given)


AnyTask = Annotated[SerializeAsAny[TaskSettings], BeforeValidator(_of_its_kind)]
