"""What all sections of settings share, and what is said about settings that cannot be used."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

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
