"""Promises of batchfs-semantics(7) about attempts to write. Each test carries the tags of its
sentences."""

import errno
import fcntl
import os

import pytest
from calls import BATCH, EPOCH, error_of


@pytest.mark.says("erofs")
@pytest.mark.parametrize("attempt", [
    lambda d: os.open(d / BATCH, os.O_WRONLY),
    lambda d: os.open(d / BATCH, os.O_RDWR),
    lambda d: os.open(d / BATCH, os.O_RDONLY | os.O_TRUNC),
    lambda d: os.open(d / "new", os.O_RDONLY | os.O_CREAT),
    lambda d: os.open(d / EPOCH, os.O_TMPFILE | os.O_RDWR),
    lambda d: os.rename(d / BATCH, d / EPOCH / "batch-000002.npy"),
    lambda d: os.rename(d / EPOCH, d / "new"),
    lambda d: os.link(d / BATCH, d / "new"),
    lambda d: os.symlink("a", d / EPOCH / "new"),
    lambda d: os.mkfifo(d / "new"),
    lambda d: os.mkdir(d / EPOCH / "new"),
    lambda d: os.unlink(d / BATCH),
    lambda d: os.rmdir(d / EPOCH),
    lambda d: os.truncate(d / BATCH, 10),
    lambda d: os.chmod(d / BATCH, 0o600),
    lambda d: os.chown(d / BATCH, 1, 1),
    lambda d: os.utime(d / BATCH, (0, 0)),
    lambda d: os.setxattr(d / BATCH, "user.a", b"b"),
    lambda d: os.removexattr(d / BATCH, "user.a"),
])
def test_no_attempt_to_write_succeeds(mounted, attempt):
    assert error_of(attempt, mounted) == errno.EROFS


@pytest.mark.says("write-fd")
def test_writing_to_what_is_open(batch):
    fd, contents = batch
    assert error_of(os.write, fd, b"a") == errno.EBADF
    assert error_of(os.pwrite, fd, b"a", 0) == errno.EBADF
    assert error_of(os.posix_fallocate, fd, 0, 10) == errno.EBADF
    assert error_of(os.ftruncate, fd, 10) == errno.EINVAL
    assert os.pread(fd, len(contents), 0) == contents


@pytest.mark.says("xattr")
@pytest.mark.parametrize("path", [BATCH, EPOCH, "summary.txt"])
def test_extended_attributes(mounted, path):
    assert error_of(os.getxattr, mounted / path, "user.a") == errno.EOPNOTSUPP
    assert error_of(os.getxattr, mounted / path, "security.selinux") == errno.EOPNOTSUPP
    try:
        assert os.listxattr(mounted / path) == []
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP


@pytest.mark.says("fsync-locks")
def test_fsync_and_locks(mounted, batch):
    fd, _ = batch
    os.fsync(fd)
    os.fdatasync(fd)
    other = os.open(mounted / BATCH, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert error_of(fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB) == errno.EWOULDBLOCK
    fcntl.flock(fd, fcntl.LOCK_UN)
    fcntl.lockf(fd, fcntl.LOCK_SH)
    os.close(other)
