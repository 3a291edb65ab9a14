"""Faults of a server while a mount is read, and the errors that readers may get for them."""

import dataclasses
import errno

from fault_proxy import Fault


@dataclasses.dataclass
class Kind:
    fault: Fault
    errors: set          # errnos that reads may end with; none: all must succeed
    always: bool = True  # no read succeeds while all requests for chunks suffer


def fault_kinds(proxy):
    """The kinds by name. The slowest kinds come first."""

    def kinds(errors, faults, always=True):
        return {name: Kind(fault, errors, always) for name, fault in faults.items()}

    return kinds({errno.ETIMEDOUT}, {
        "a stall": Fault(stall=10),
        "a stall in the header": Fault(raw=b"HTTP/1.1 200 OK\r\nContent-Le", stall=0),
        "a silent server": Fault(latency=5),
        "a drip": Fault(drip=0.2),
    }) | kinds({errno.EIO}, {
        "408": Fault(status=408),
        "429": Fault(status=429),
        "429 with Retry-After": Fault(status=429, headers={"Retry-After": "0"}),
        "500": Fault(status=500),
        "502": Fault(status=502),
        "503": Fault(status=503),
        "503 with Retry-After": Fault(status=503, headers={"Retry-After": "3600"}),
        "504": Fault(status=504),
        "400": Fault(status=400),
        "204": Fault(status=204),
        "304": Fault(status=304),
        "416": Fault(status=416),
        "206 with nothing": Fault(status=206),
        "a web page": Fault(status=200, headers={"Content-Type": "text/html"},
                            body=b"<html>Log in</html>"),
        "no answer": Fault(hang_up=True),
        "no HTTP": Fault(raw=b"SSH-2.0-OpenSSH_9.2p1\r\n"),
        "a header without end": Fault(headers={"X-Long": "a" * 400000}),
        "a reset": Fault(cut=10, reset=True),
        "a short body": Fault(cut=10),
        "no body": Fault(cut=0),
        "half of the pieces": Fault(chunked=True, cut=500),
        "another encoding": Fault(encoding=True),
        "a redirect to nobody": Fault(redirect=lambda path: f"http://127.0.0.1:9/{path}"),
        # of an object that was seen before, an empty answer is another version
        }) | kinds({errno.EIO, errno.ESTALE}, {
            "200 with nothing": Fault(status=200),
            "half a header": Fault(raw=b"HTTP/1.1 200 OK\r\nContent-Le"),
            # finding out may take longer than the connection has
            }) | kinds(
        {errno.EIO, errno.ETIMEDOUT}, {
            "an unknown host": Fault(redirect=lambda path: f"http://no-such-host.invalid/{path}"),
            "no TLS": Fault(redirect=lambda path: f"https://127.0.0.1:{proxy.port}/{path}"),
            # not all reads suffer from these: chunks outside of shards do not, nor one that came
            # with another
            }) | kinds({errno.EIO}, {
                "a wrong byte": Fault(corrupt=True),
                "a wrong range": Fault(shift=3),
                "a range with less": Fault(lie=5),
                "a range that is not told": Fault(lose_range=True),
            }, always=False) | kinds({errno.EACCES}, {
                "401": Fault(status=401, body=b"no"),
                "403": Fault(status=403, body=b"no"),
            }) | kinds({errno.EOPNOTSUPP}, {
                "a circle": Fault(redirect=lambda path: f"/{path}"),
                "a redirect that is none": Fault(redirect=lambda path: f"ftp://127.0.0.1/{path}"),
            }) | kinds({errno.ESTALE}, {
                "404 of what was there": Fault(status=404),
            }) | kinds({errno.ESTALE}, {
                "other versions": Fault(new_etag=True),
            }, always=False) | kinds(set(), {
                "latency": Fault(latency=0.02),
                "jitter": Fault(jitter=0.1),
                "no ranges": Fault(ignore_range=True),
                "an interim answer": Fault(early=True),
                "in pieces": Fault(chunked=True),
                "closed after each answer": Fault(closes=True),
                "an end that is the connection's": Fault(unsized=True),
            }, always=False)
