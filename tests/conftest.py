"""Tests leave the user's cache alone; those that are about it make their own."""

import os

os.environ["SARDONYX_CACHE"] = "off"
