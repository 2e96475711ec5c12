"""A page and a JSON API in front of trained models, on this machine."""

from graphwright.server.limits import Limits

__all__ = ["Limits"]
