"""What the chips that mlc generates code for have."""
