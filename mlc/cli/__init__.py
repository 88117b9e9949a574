"""The command-line tools, one a file."""
