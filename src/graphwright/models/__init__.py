"""Neural networks: encoders, decoder, heads, target encoder."""

from graphwright.models.decoder import NodeDecoder
from graphwright.models.encoders import ConvolutionalEncoder, SegformerEncoder
from graphwright.models.heads import GraphHead
from graphwright.models.positional import flip_signs, laplacian_encoding
from graphwright.models.predictor import GraphPredictor, Predicted
from graphwright.models.target_encoder import TargetEncoder

__all__ = [
    "ConvolutionalEncoder",
    "GraphHead",
    "GraphPredictor",
    "NodeDecoder",
    "Predicted",
    "SegformerEncoder",
    "TargetEncoder",
    "flip_signs",
    "laplacian_encoding",
]
