"""What goes wrong, as Python exceptions. Each is an `Error`, and what Python itself would raise."""


class Error(RuntimeError):
    """A batch cannot be had; the text says why, and what to do about it."""


class InvalidArgument(Error, ValueError):
    """What was asked for makes no sense: a rank beyond the world, a view that the place has not."""


class NotFound(Error, FileNotFoundError):
    """The mount, the view or the batch does not exist."""

    def __str__(self) -> str:  # OSError's would show nothing
        return str(self.args[0]) if self.args else ""


class NoMemory(Error, MemoryError):
    """Too many batches are held; let go of them, or copy what is needed."""


class NotSupported(Error):
    """It is valid, but not possible here."""
