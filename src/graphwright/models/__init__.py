"""Neural networks: encoders, decoder, heads, target encoder."""

from graphwright.models.encoders import (
    AttentionEncoder,
    ConvolutionalEncoder,
    Encoder,
    FingerprintEncoder,
    SegformerEncoder,
    SequenceEncoder,
    SetEncoder,
    SetInputs,
    SpectrumEncoder,
    SpectrumInputs,
    Tokens,
    VectorEncoder,
    build_encoder,
)
from graphwright.models.heads import GraphHead
from graphwright.models.predictor import (
    GraphPredictor,
    Inputs,
    NodeDecoder,
    Predicted,
    SlotTokens,
    TokenSlots,
    inputs_to,
)
from graphwright.models.target_encoder import NodeEncoder, TargetEncoder, flip_signs, laplacian_encoding

__all__ = [
    "AttentionEncoder",
    "ConvolutionalEncoder",
    "Encoder",
    "FingerprintEncoder",
    "GraphHead",
    "GraphPredictor",
    "Inputs",
    "NodeDecoder",
    "NodeEncoder",
    "Predicted",
    "SegformerEncoder",
    "SequenceEncoder",
    "SetEncoder",
    "SetInputs",
    "SlotTokens",
    "SpectrumEncoder",
    "SpectrumInputs",
    "TargetEncoder",
    "TokenSlots",
    "Tokens",
    "VectorEncoder",
    "build_encoder",
    "flip_signs",
    "inputs_to",
    "laplacian_encoding",
]
