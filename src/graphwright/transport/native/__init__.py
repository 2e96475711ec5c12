"""Compiled kernels for the processor; optional, and everything works without them."""

from graphwright.transport.native.library import Kernels, kernels_for

__all__ = ["Kernels", "kernels_for"]
