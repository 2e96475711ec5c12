"""graphwright learns to predict whole graphs from anything."""

__version__ = "0.1.0"
