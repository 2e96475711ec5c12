"""From a prediction's logits to graphs."""

from graphwright.decoding.threshold import Slots, decode, harden

__all__ = ["Slots", "decode", "harden"]
