"""What is said about settings that cannot be used."""

from __future__ import annotations


class SettingsError(ValueError):
    """An unknown setting, a value that it cannot take, or a source that cannot be read: one line."""
