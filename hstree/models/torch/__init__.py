"""Models whose hidden vectors a PyTorch network computes.

Importing it needs torch; without it, MissingExtraError names the command that installs it.
"""

import hstree.interop.torch  # noqa: F401 - refuses a missing torch in one line
