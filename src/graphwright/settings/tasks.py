"""Settings of tasks: every kind of task has a class of them, and its tasks are registered by their kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from pydantic import BeforeValidator, Field, SerializeAsAny

from graphwright.registry import Registry
from graphwright.settings.base import Settings

if TYPE_CHECKING:
    from graphwright.settings.overrides import DataSettings

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
