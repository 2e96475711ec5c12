"""What a model must beat: simple methods on the same samples."""

from graphwright.baselines.nearest import NearestFingerprint, Neighbour, nearest_figures, nearest_molecules

__all__ = ["NearestFingerprint", "Neighbour", "nearest_figures", "nearest_molecules"]
