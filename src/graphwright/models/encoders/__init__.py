"""Inputs of every kind to tokens (b, k, width)."""

from graphwright.models.encoders.generic import (
    FingerprintEncoder,
    SequenceEncoder,
    SetEncoder,
    SetInputs,
    VectorEncoder,
)
from graphwright.models.encoders.image import ConvolutionalEncoder, SegformerEncoder
from graphwright.models.encoders.spectrum import SpectrumEncoder, SpectrumInputs
from graphwright.models.encoders.tokens import Tokens

__all__ = [
    "ConvolutionalEncoder",
    "FingerprintEncoder",
    "SegformerEncoder",
    "SequenceEncoder",
    "SetEncoder",
    "SetInputs",
    "SpectrumEncoder",
    "SpectrumInputs",
    "Tokens",
    "VectorEncoder",
]
