"""Figures that only a checkout draws: what they need beyond the package is no user's."""
