# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Stand-ins for other tools' entry points."""
