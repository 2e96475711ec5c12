"""Coverage-guided fuzzing of everything that reads a file; see docs/reliability.md. Not part of the package."""
