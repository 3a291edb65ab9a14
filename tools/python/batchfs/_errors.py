"""Failures as Python exceptions. Each is an `Error`, and the exception that Python itself would
raise."""


class Error(RuntimeError):
    """A batch is not available; the text says why, and what to do."""


class InvalidArgument(Error, ValueError):
    """An invalid argument: a rank beyond the world, a view that the mount lacks."""


class NotFound(Error, FileNotFoundError):
    """The mount, the view or the batch does not exist."""

    def __str__(self) -> str:  # OSError's would show nothing
        return str(self.args[0]) if self.args else ""


class NoMemory(Error, MemoryError):
    """Too many batches are held; let go of them, or copy what is needed."""


class NotSupported(Error):
    """It is valid, but not possible here."""
