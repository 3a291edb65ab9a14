"""Input that is far too long: one line of bounded length, in little memory."""

import json

import pytest


@pytest.mark.parametrize("command", ["plan", "batch"])
def test_an_error_line_is_bounded(batchfs, weather, tmp_path, command):
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"window": {"time": 1}, "variables": ["t" * 1_500_000]}))
    done = batchfs(command, weather, "--view", view)
    assert done.returncode == 1 and done.stdout == b""
    line = done.stderr.decode()
    assert line.count("\n") == 1 and len(line) < 2300
    assert line.startswith(f"batchfs: {command} failed: ") and "[... " in line and str(view) in line


def test_a_long_view_file_is_refused(fails, weather, tmp_path):
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"window": {"time": 1},
                                "select": {"time": ["2000-01-01T00"] * 800_000}}))
    assert view.stat().st_size > 12_000_000
    line = fails(1, "plan", weather, "--view", view)
    assert f"it has {view.stat().st_size} bytes, and a view file may have 2 MiB" in line
