"""Answers of S3 that moto does not send: written out by the documentation, with botocore checking
signatures."""

import io
import re
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import numpy as np
import pytest
import zarr

from cloud_servers import Handler, Server, files_of

BUCKET, REGION = "the-bucket", "eu-north-1"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


class S3(Handler):
    def refuse(self, status, code, more="", **headers):
        return self.answer(status, "<?xml version='1.0'?>\n"
                                   f"<Error><Code>{code}</Code><Message>no</Message>{more}</Error>",
                           **headers)

    def do_POST(self):
        """The token service: each token is good for the requests that `token_life` says."""
        form = dict(
            urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        assert (form["Action"] == "AssumeRoleWithWebIdentity"
                and form["WebIdentityToken"] == "the identity")
        self.server.tokens += 1
        return self.answer(
            200,
            '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            f"""
            <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId>
            <SecretAccessKey>{SECRET}</SecretAccessKey>"""
            f"""<SessionToken>token{self.server.tokens}</SessionToken>
            <Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>"""
            f"""</AssumeRoleWithWebIdentityResult>
            </AssumeRoleWithWebIdentityResponse>""")

    def signature_is_right(self, told, region):
        names = re.search("SignedHeaders=([^,]*)", told)[1].split(";")
        assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names)
        self.server.payers.add((self.headers["x-amz-request-payer"],
                                "x-amz-request-payer" in names))
        request = botocore.awsrequest.AWSRequest(
            method=self.command, url=self.server.url + self.path,
            headers={name: self.headers[name] for name in names})
        request.context["timestamp"] = self.headers["x-amz-date"]
        signer = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials("ASIA", SECRET), "s3",
                                           region)
        signature = signer.signature(
            signer.string_to_sign(request, signer.canonical_request(request)), request)
        return told.endswith(f"Signature={signature}")

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        told = self.headers.get("Authorization", "")
        region = told.split("/")[2] if told else ""
        if not self.signature_is_right(told, region):
            return self.refuse(403, "SignatureDoesNotMatch")
        if region != REGION:
            return self.refuse(400, "AuthorizationHeaderMalformed", f"<Region>{REGION}</Region>")
        if server.expires_after and self.headers.get("x-amz-security-token") == "token1":
            server.expires_after -= 1
            if server.expires_after == 0:
                server.expires_after = 1
                return self.refuse(400, "ExpiredToken")
        if server.slow and len(server.asked) % 2:
            return self.refuse(503, "SlowDown")
        if "list-type=2" in self.path:
            return self.refuse(403, "AccessDenied")
        data = server.objects.get(urllib.parse.unquote(self.path_part).removeprefix(f"/{BUCKET}/"))
        if data is None:
            return self.refuse(403, "AccessDenied")  # as without the right to list
        return self.answer_object(data)

    do_HEAD = do_GET


@pytest.fixture
def s3(stores):
    server = Server(S3, {key: data for folder in stores.values() for key, data in files_of(folder)})
    server.asked, server.tokens, server.expires_after, server.slow, server.payers = (
        [], 0, 0, False, set())
    yield server
    server.shutdown()


@pytest.fixture
def keys(s3):
    return {"AWS_ACCESS_KEY_ID": "ASIA", "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": s3.url}


def values_of(stores, name, path):
    return zarr.open_group(stores[name], mode="r")[path][...]


def load(output):
    return np.load(io.BytesIO(output))


def test_forbidden_means_missing_where_the_server_says_so_of_everything(
        cloud, cloud_fails, s3, keys, stores):
    told = load(cloud("cat", f"s3://{BUCKET}/v2c.zarr", "sparse", "--decode", "raw", **keys))
    assert np.array_equal(told, values_of(stores, "v2c.zarr", "sparse"))
    assert sum(".batchfs-probe-" in path for path in s3.asked) == 1
    assert "may not list" in cloud_fails("inspect", f"s3://{BUCKET}/v2.zarr", **keys)


def test_what_403_means_can_be_said(cloud, cloud_fails, s3, keys, stores):
    told = load(cloud("cat", f"s3://{BUCKET}/v2c.zarr", "sparse", "--decode", "raw", "--missing",
                      "403", **keys))
    assert np.array_equal(told, values_of(stores, "v2c.zarr", "sparse"))
    line = cloud_fails("cat", f"s3://{BUCKET}/v2c.zarr", "sparse", "--missing", "404", **keys)
    assert "access denied" in line and "sparse/" in line
    assert not any(".batchfs-probe-" in path for path in s3.asked)


@pytest.mark.parametrize("how", ["option", "variable"])
def test_who_agrees_to_pay_says_so_in_every_request(cloud, s3, keys, how):
    options = ["--requester-pays"] if how == "option" else []
    variables = {"AWS_REQUEST_PAYER": "requester"} if how == "variable" else {}
    cloud("cat", f"s3://{BUCKET}/v3c.zarr", "values", *options, **keys, **variables)
    assert s3.payers == {("requester", True)}
    s3.payers.clear()
    cloud("cat", f"s3://{BUCKET}/v3c.zarr", "values", **keys)
    assert s3.payers == {(None, False)}


def test_the_region_is_learnt_from_the_answer(cloud, s3, keys, stores):
    told = load(cloud("cat", f"s3://{BUCKET}/v3c.zarr", "values", **keys, AWS_REGION="us-west-2"))
    assert np.array_equal(told, values_of(stores, "v3c.zarr", "values"))


def test_a_session_that_ends_in_the_middle_is_renewed(cloud, s3, keys, stores, tmp_path):
    (tmp_path / "identity").write_text("the identity\n")
    s3.expires_after = 3
    told = load(cloud("cat", f"s3://{BUCKET}/v3c.zarr", "values", AWS_ENDPOINT_URL=s3.url,
                      AWS_ENDPOINT_URL_STS=s3.url,
                      AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "identity"),
                      AWS_ROLE_ARN="arn:aws:iam::1:role/r"))
    assert np.array_equal(told, values_of(stores, "v3c.zarr", "values"))
    assert s3.tokens == 2


def test_a_server_that_wants_less_gets_it(cloud, s3, keys, stores):
    s3.slow = True
    told = load(cloud("cat", f"s3://{BUCKET}/v3c.zarr", "values", "--retries", "20", **keys))
    assert np.array_equal(told, values_of(stores, "v3c.zarr", "values"))
