"""Writes what fuzzing starts from, tests/fuzz/corpus: small good inputs of every kind, as servers and programs write them. Run
again when a target's input changes: python3 tests/fuzz/make_corpus.py"""

import io
import pathlib
import shutil
import zipfile

CORPUS = pathlib.Path(__file__).parent / "corpus"
BYTES = bytes(i * i // 7 % 256 for i in range(200))
count = {}


def put(target, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    count[target] = count.get(target, 0) + 1
    (folder / f"{count[target]:02d}").write_bytes(data)


def zips():
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("zarr.json", '{"zarr_format": 3}' * 3)
            archive.writestr("t/c/0/0", BYTES)
            archive.writestr("t/c/0/1", b"")
            archive.mkdir("empty")
            archive.comment = b"a comment"
        put("zip", file.getvalue())
    file = io.BytesIO(b"before")
    file.seek(6)
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("big", "w", force_zip64=True) as member:
            member.write(b"zip64")
    put("zip", file.getvalue())


def answers():
    def answer(service, status, body, headers=""):
        put("answers", bytes([service, status]) + headers.encode() + b"\0" + body.encode())

    answer(0, 0, '<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>'
                 '<Contents><Key>p/.zattrs</Key></Contents><CommonPrefixes><Prefix>p/t2m/</Prefix></CommonPrefixes></ListBucketResult>')
    for status, code in ((2, "PermanentRedirect"), (5, "ExpiredToken"), (7, "AccessDenied"), (8, "NoSuchKey"), (13, "SlowDown")):
        answer(0, status, f"<Error><Code>{code}</Code><Message>m</Message><Region>eu-west-1</Region></Error>",
               "x-amz-bucket-region: eu-west-1\n")
    answer(1, 0, '{"nextPageToken":"CgI=","prefixes":["p/t2m/"],"items":[{"name":"p/"},{"name":"p/.zattrs"}]}')
    answer(1, 7, '{"error":{"code":403,"message":"m","errors":[{"reason":"forbidden"}]}}')
    answer(2, 0, '<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>p/.zattrs</Name></Blob><BlobPrefix><Name>p/t2m/</Name>'
                 '</BlobPrefix></Blobs><NextMarker>n</NextMarker></EnumerationResults>')
    answer(2, 7, "", "x-ms-error-code: AuthenticationFailed\n")
    answer(3, 1, "0123456789", "content-range: bytes 5-14/100\ncontent-length: 10\netag: \"a\"\nretry-after: 3\n")
    answer(3, 10, "", "content-range: bytes */4\nlast-modified: Sat, 21 Nov 2026 07:28:00 GMT\nretry-after: Sat, 21 Nov 2026 07:28:00 GMT\n")
    answer(3, 0, "<html></html>", "content-type: text/html\n")


if __name__ == "__main__":
    shutil.rmtree(CORPUS, ignore_errors=True)
    for make in (zips, answers):
        make()
    print(count)
