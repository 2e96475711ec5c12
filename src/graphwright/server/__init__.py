"""A page and a JSON API in front of trained models, on this machine."""

from graphwright.server.app import create_app
from graphwright.server.catalogue import catalogue
from graphwright.server.limits import Limits

__all__ = ["Limits", "catalogue", "create_app"]
