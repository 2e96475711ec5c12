"""Inputs of every kind to tokens (b, k, width)."""

from graphwright.models.encoders.image import ConvolutionalEncoder, SegformerEncoder

__all__ = ["ConvolutionalEncoder", "SegformerEncoder"]
