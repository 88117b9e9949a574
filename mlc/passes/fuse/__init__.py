"""Phase `kernels`: which operations become one kernel, and the host program that calls them."""
