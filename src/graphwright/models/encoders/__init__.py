"""Inputs of every kind to tokens (b, k, width)."""

from graphwright.models.encoders.fingerprint import FingerprintEncoder
from graphwright.models.encoders.image import ConvolutionalEncoder, SegformerEncoder
from graphwright.models.encoders.spectrum import SpectrumEncoder, SpectrumInputs
from graphwright.models.encoders.tokens import Tokens

__all__ = [
    "ConvolutionalEncoder",
    "FingerprintEncoder",
    "SegformerEncoder",
    "SpectrumEncoder",
    "SpectrumInputs",
    "Tokens",
]
