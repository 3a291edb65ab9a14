"""Invalid times in a view, and the messages about them."""

import numpy as np
import pandas as pd
import pytest
from timed_store import Run, write


@pytest.mark.parametrize("samples, message", [
    ({"spacing": {"time": "6x"}}, "samples.spacing.time: '6x' is not a length of time; write 6h"),
    ({"spacing": {"time": 6}},
     "samples.spacing.time: expected a length of time, a string; write 6h"),
    ({"spacing": {"time": "0h"}}, "samples.spacing.time: '0h': labels cannot be 0 apart"),
    ({"spacing": {}}, "samples.spacing: name at least one dimension"),
    ({"spacing": {"x": "6h"}}, "samples.spacing.x: 'x' has no coordinate of times: it is float64"),
    ({"spacing": {"tim": "6h"}}, "samples.spacing.tim: 'tim' is not a dimension of \"window\""),
    ({"freq": "6h"}, "samples: unknown key 'freq'"),
    ({"spacing": {"time": "5h"}},
     "samples.spacing.time: no sample is left: of 19 windows along 'time' each reaches across "
     "labels that are not 5h apart, as 2000-01-01T00:00:00 and 2000-01-01T06:00:00"),
    ({"where": {}}, "samples.where: name at least one dimension"),
    ({"where": {"time": {}}}, "samples.where.time: name a field of the calendar"),
    ({"where": {"time": {"months": [6]}}},
     "samples.where.time: unknown key 'months': a list of months is \"month\": [6, 7, 8]"),
    ({"where": {"time": {"month": "June"}}}, "samples.where.time.month: 'June' is not a month"),
    ({"where": {"time": {"month": []}}}, "samples.where.time.month: the list is empty"),
    ({"where": {"time": {"month": [6, 13]}}},
     "samples.where.time.month[1]: '13' is not a month: it is a whole number from 1 to 12"),
    ({"where": {"time": {"season": ["DJF", "JJ"]}}},
     "samples.where.time.season[1]: 'JJ' is not a season; there are DJF, MAM, JJA, SON"),
    ({"where": {"time": {"month": [7]}}},
     "samples.where.time: none of 20 times of 'time', from 2000-01-01T00:00:00 to "
     "2000-01-05T18:00:00, has month 7"),
    ({"where": {"time": ["#19"]}},
     "samples.where.time: no sample is left: of 19 windows along 'time' none with its start is "
     "like this; the first begins at 2000-01-01T00:00:00"),
    ({"where": {"x": {"month": [7]}}},
     "samples.where.x: 'x' holds no times, so that it has no month 7"),
    ({"where": {"x": {"from": 15, "to": 16}}},
     "samples.where.x: nothing of 'x' lies in this range"),
    ({"where": {"x": 15}}, "samples.where.x: no '15' in 'x'"),
    ({"where": {"y": 15}}, "samples.where.y: 'y' is not a dimension of \"window\""),
    ({"where": {"time": {"hour": [0]}, "of": "all"}},
     "samples.where.of: 'all' is none of start, footprint"),
    ({"where": {"of": "footprint"}}, "samples.where: name at least one dimension"),
])
def test_mistakes_in_samples(batchfs, tmp_path, samples, message):
    store = write(tmp_path / "s.zarr",
                  pd.date_range("2000-01-01", periods=20, freq="6h").values.astype("M8[ns]"))
    view = {"window": {"time": {"size": 2, "stride": 1}, "x": 1}, "variables": ["a"],
            "samples": samples}
    assert message in Run(batchfs, tmp_path, store, view).refusal()


@pytest.mark.parametrize("changes, message", [
    ({"offsets": [0, "6h"]}, 'tensors.u.offsets.time[1]: "6h" is a length of time, and those '
                             'before are numbers of positions; a list has one kind'),
    ({"offsets": ["6h", 0]},
     "tensors.u.offsets.time[1]: 0 is a number, and those before are lengths of time"),
    ({"offsets": ["6 hours"]},
     "tensors.u.offsets.time[0]: '6 hours' is not a length of time; write 6h"),
    ({"offsets": ["5h"]}, "tensors.u.offsets.time: no sample is left: of 19 windows along 'time' "
                          "none has its labels: there is no label 5h after 2000-01-03T06:00:00"),
    ({"offsets": ["6h"], "wrap": True},
     "tensors.u.offsets.time: lengths of time do not go with \"wrap\""),
    ({"offsets": ["6h"], "select": ["2000-01-02T00", "2000-01-01T00"] + ["2000-01-03T00"]},
     "tensors.u.offsets.time: lengths of time need labels in order, each once, and 'time' has "
     "2000-01-01T00:00:00 at position 1 after 2000-01-02T00:00:00"),
    ({"reserve": {"time": []}}, "reserve.time: the list is empty"),
    ({"reserve": {}}, "reserve: name at least one dimension"),
    ({"reserve": {"lat": [1]}}, "reserve.lat: 'lat' is not a dimension of \"window\""),
    ({"reserve": {"time": [100]}}, "window.time: no window of 1 fits"),
    ({"reserve": {"time": ["100d"]}}, "reserve.time: no sample is left: of 19 windows"),
    ({"size": "5h"}, "window.time.size: '5h' is not a multiple of 6h, the step of 'time'"),
    ({"size": "-6h"}, "window.time.size: '-6h' is not more than 0"),
    ({"size": "6"},
     "window.time.size: expected a whole number, or a length of time as 24h; '6' is neither"),
    ({"size": "1mo"}, "window.time.size: '1mo' is not a multiple of 6h, the step of 'time'"),
    ({"size": "12h", "gap": True},
     "window.time.size: '12h' needs labels that are one step apart, and after 2000-01-02T00:00:00 "
     "'time' continues with 2000-01-02T12:00:00; give the step: \"samples\": {\"spacing\": "
     "{\"time\": \"6h\"}}"),
])
def test_mistakes_in_durations(batchfs, tmp_path, changes, message):
    times = pd.date_range("2000-01-01", periods=19, freq="6h").values.astype("M8[ns]")
    store = write(tmp_path / "s.zarr", np.delete(times, [5]) if changes.get("gap") else times)
    view = {"window": {"time": {"size": changes.get("size", 1), "stride": 1,
                                "wrap": changes.get("wrap", False)}},
            "tensors": {"u": {"variables": ["a"],
                              "offsets": {"time": changes.get("offsets", [0])}}}}
    if "reserve" in changes:
        view["reserve"] = changes["reserve"]
    if "select" in changes:
        view["select"] = {"time": changes["select"]}
    assert message in Run(batchfs, tmp_path, store, view).refusal()
