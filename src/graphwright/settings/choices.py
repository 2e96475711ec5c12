"""What a run chooses by name. Each registers itself where it is written, in a package above or in another one.

What settings are checked against before any data are read is said here; what else an encoder or a matching is, its
own package says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn

from graphwright.graphs import Vocabulary
from graphwright.registry import Registry

if TYPE_CHECKING:
    from graphwright.settings.schema import Model, Run


@dataclass(frozen=True)
class InputForm:
    """What a task says of its inputs before an encoder is made.

    kind: what they are, such as "picture". size: what an encoder must know of them: pixels to a side, bits,
    adducts, numbers of a vector, words. described: the inputs in words, for an error message.
    """

    kind: str
    size: int
    described: str = ""


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
    """What settings must know of a matching. keeps_order: whether slot i always stands for node i."""

    keeps_order: bool

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
