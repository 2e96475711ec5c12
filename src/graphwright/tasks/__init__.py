"""Tasks: what is predicted, from what, and where the samples come from."""
