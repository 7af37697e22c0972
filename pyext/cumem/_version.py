# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The version of cumem; pyproject.toml and CMakeLists.txt read it here."""

__version__ = "0.1.0"
