"""graphwright learns to predict whole graphs from anything."""

from graphwright import graphs, losses, transport

__version__ = "0.1.0"

__all__ = ["__version__", "graphs", "losses", "transport"]
