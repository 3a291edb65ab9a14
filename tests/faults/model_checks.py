"""How the processes of model.py say that something is other than it must be."""


class Different(Exception):
    pass


def must(condition, *what):
    if not condition:
        raise Different(*what)


def must_be(got, expected, *what):
    if got == expected:
        return
    if isinstance(expected, (bytes, memoryview)):
        first = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b),
                     min(len(got), len(expected)))
        raise Different(f"{len(got)} bytes came, {len(expected)} are "
                        f"right, they differ from byte {first} on:", bytes(got[first:first + 16]),
                        bytes(expected[first:first + 16]), *what)
    raise Different(f"{got!r} is not {expected!r}", *what)


def must_fail(error, action, *arguments, **options):
    """With this errno, or one of these."""
    try:
        result = action(*arguments, **options)
    except OSError as caught:
        must(caught.errno in (error if isinstance(error, tuple) else (error,)),
             f"errno {caught.errno}, not {error}", arguments)
        return
    raise Different(f"succeeded with {result!r}, but errno {error} is right", arguments)
