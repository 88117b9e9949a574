"""The command-line tools, one a file."""

import os

# NumPy's threads for products wait for their first one in a loop, a tenth of a second of a processor that a command has
# other work for. With this they sleep. It is read when NumPy is loaded, which nothing has done here.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
