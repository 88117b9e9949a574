"""What all importers share: the builder, and one file per operator family with the semantics they have in common."""
