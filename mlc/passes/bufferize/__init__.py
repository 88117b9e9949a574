"""Phase `buffers`: the host function on memrefs, and where its memory lies."""
