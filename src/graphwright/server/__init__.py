"""A page and a JSON API in front of trained models, on this machine."""
