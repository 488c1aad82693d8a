"""The version of the package, which the build reads."""

VERSION = "0.3.0"
