"""Templates for Hopper's tensor cores (sm_90a): asynchronous copies by tensor maps, and instructions of four warps."""
