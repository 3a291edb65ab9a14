"""The version of the package, which the program must have too."""

VERSION = "0.2.0"
