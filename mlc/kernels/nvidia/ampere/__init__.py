"""Templates for the tensor cores that Ampere and later chips have: copies by threads, instructions of one warp."""
