"""Inputs of every kind to tokens (b, k, width)."""

from graphwright.models.encoders.encoder import AttentionEncoder, Encoder, Tokens, build_encoder
from graphwright.models.encoders.generic import (
    FingerprintEncoder,
    SequenceEncoder,
    SetEncoder,
    SetInputs,
    VectorEncoder,
    own_encoder,
)
from graphwright.models.encoders.image import ConvolutionalEncoder, SegformerEncoder
from graphwright.models.encoders.several import SeveralEncoder
from graphwright.models.encoders.spectrum import SpectrumEncoder, SpectrumInputs

__all__ = [
    "AttentionEncoder",
    "ConvolutionalEncoder",
    "Encoder",
    "FingerprintEncoder",
    "SegformerEncoder",
    "SequenceEncoder",
    "SetEncoder",
    "SetInputs",
    "SeveralEncoder",
    "SpectrumEncoder",
    "SpectrumInputs",
    "Tokens",
    "VectorEncoder",
    "build_encoder",
    "own_encoder",
]
