"""TLS and HTTP/2, against a private authority, with Python's server and with nginx."""

import io
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from fault_proxy import QUICK, FaultProxy


def trusting(authority, variable="SSL_CERT_FILE"):
    others = {name: value for name, value in os.environ.items()
              if name not in ("SSL_CERT_FILE", "CURL_CA_BUNDLE")}
    return {**others, variable: str(authority[0])}


@pytest.fixture
def secure(directory, authority):
    with FaultProxy(directory, authority[1], authority[2]) as proxy:
        yield proxy


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "CURL_CA_BUNDLE"])
def test_a_named_authority_is_trusted(good, secure, authority, values, variable):
    output = good("cat", secure.url, "x", env=trusting(authority, variable))
    np.testing.assert_array_equal(np.load(io.BytesIO(output)), values)


def test_an_unknown_authority_is_not(fails, secure):
    line = fails(1, "cat", secure.url, "x", *QUICK)
    assert "certificate" in line and "SSL_CERT_FILE" in line
    assert secure.requests == []


def test_a_certificate_for_another_host_is_not(fails, secure, authority):
    line = fails(1, "cat", secure.other_url, "x", *QUICK, env=trusting(authority))
    assert "certificate" in line
    assert secure.requests == []


def test_plain_http_on_a_tls_port_is_an_error(fails, secure):
    fails(1, "cat", secure.url.replace("https", "http"), "x", *QUICK)


def test_tls_on_a_plain_port_is_an_error(fails, proxy):
    assert "TLS" in fails(1, "cat", proxy.url.replace("http", "https"), "x", *QUICK)


@pytest.fixture
def nginx(directory, authority, tmp_path):
    """The URLs of nginx, plain and with TLS and HTTP/2, and its access log."""
    if shutil.which("nginx") is None and not os.path.exists("/usr/sbin/nginx"):
        pytest.skip("nginx is not installed")
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        ports = one.getsockname()[1], two.getsockname()[1]
    log = tmp_path / "access.log"
    user = "user root;" if os.getuid() == 0 else ""
    places = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in
                     ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(f"""
        {user} daemon off; pid {tmp_path}/pid; worker_processes 1; error_log {tmp_path}/error.log;
        events {{ worker_connections 512; }}
        http {{
          {places}
          default_type application/octet-stream;
          log_format protocol "$server_protocol $status $request_uri $http_range";
          access_log {log} protocol;
          server {{
            listen 127.0.0.1:{ports[0]};
            listen 127.0.0.1:{ports[1]} ssl http2;
            ssl_certificate {authority[1]}; ssl_certificate_key {authority[2]};
            root {directory};
          }}
        }}""")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    server = subprocess.Popen([program, "-e", tmp_path / "error.log", "-c",
                               tmp_path / "nginx.conf"])
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/none", timeout=5)
        except urllib.error.HTTPError:
            break
        except OSError:
            assert server.poll() is None, (tmp_path / "error.log").read_text()
            time.sleep(0.05)
    yield f"http://127.0.0.1:{ports[0]}", f"https://127.0.0.1:{ports[1]}", log
    server.terminate()
    server.wait(20)


def test_nginx_over_plain_http(good, nginx, values):
    np.testing.assert_array_equal(np.load(io.BytesIO(good("cat", nginx[0], "x"))), values)
    assert "HTTP/1.1 20" in nginx[2].read_text()


def test_nginx_over_http2(good, nginx, authority, values):
    output = good("cat", nginx[1], "x", env=trusting(authority))
    np.testing.assert_array_equal(np.load(io.BytesIO(output)), values)
    lines = [line for line in nginx[2].read_text().splitlines() if "/none" not in line]
    assert lines and all(line.startswith("HTTP/2.0 ") for line in lines)
