"""What a command's exit code says to scripts."""

DONE, SOME_FAILED, USAGE, INTERRUPTED, INTERNAL = 0, 1, 2, 3, 4
