"""`batch` and `plan` with a view of one store."""

import json


def view_file(folder, view):
    file = folder / "view.json"
    file.write_text(json.dumps(view))
    return file


def batch(batchfs, folder, store, view, number=0, tensor="x"):
    return batchfs.npy("batch", store, "--view", view_file(folder, view), "--batch", number,
                       "--tensor", tensor)


def refused(batchfs, folder, store, view):
    return batchfs.refusal("plan", store, "--view", view_file(folder, view))
