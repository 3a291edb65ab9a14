"""Small stores with the layouts of public ones, for the examples and the guide:
`python stores.py era5 hrrr`.

Names, dimensions, their order, data types, chunks (smaller), codecs and groups are those of the
public store; values are made up, from a fixed seed. Each is written into the folder --folder (by
default here), unless it is there already.

era5        ERA5 of WeatherBench 2,
            gs://weatherbench2/datasets/era5/1959-2022-6h-64x32_equiangular_conservative.zarr
imerg       half-hourly rain as of GPM IMERG, for the first two months of era5 and on its grid
oisst       daily sea surface temperature as of NOAA OISST, at longitudes from -180 to 180
gefs-0, gefs-1, gefs-2  members of an ensemble forecast, a store each
cmip6       one variable of CMIP6, gs://cmip6/CMIP6/CMIP/...: monthly, calendar noleap
sentinel2   a product of Sentinel-2 L2A in EOPF's Zarr format
cells       an OME-Zarr image with labels, version 0.4, as those of the Image Data Resource
hrrr        forecasts of HRRR with init_time and lead_time, sharded, as dynamical.org's
"""

import argparse
import functools
import pathlib
import shutil
import warnings

import numpy as np
import xarray as xr
import zarr
from numcodecs import Blosc


def smooth(random, shape, passes=2):
    """Noise whose neighbours along the last two dimensions are alike."""
    values = random.standard_normal(shape, dtype="f4")
    for _ in range(passes):
        for axis in (-1, -2):
            values = (values + np.roll(values, 1, axis)
                      + np.roll(values, -1, axis)) / np.float32(1.7)
    return values


# Ninths of land, a line of 32 for each latitude from the north; longitudes from 0. From Natural
# Earth's coastlines.
LAND = """
00000000000000000000000023223420
00210223686434210021135365359950
07699999999987521176899943604000
58999999877770100000079998930000
63557788999630000000049998100001
98768799999200000000005932000005
99997207181000000000000340000009
58997001022100000000000005960003
04990000012122000000000006998100
03983000000473000000000001899000
00930000002999000000000000891000
00000000000003000000000000920000
00000000000000000000000001400000
00000000000000000000000000000000
78889989999999820012444454500026
99999999999999965569999999878899
"""


def land():
    """The part of each place that is land, (longitude, latitude), on the grid of era5."""
    return np.array([[int(digit) for digit in line] for line in LAND.split()[::-1]], "f4").T / 9


def shifted(field, cells):
    """A field moved to the east by a part of a cell, another at each latitude, the last
    dimension."""
    wave = np.fft.rfftfreq(field.shape[-2])[:, None]
    return np.fft.irfft(np.fft.rfft(field, axis=-2) * np.exp(-2j * np.pi * wave * cells),
                        field.shape[-2], axis=-2)


def weather(random, times, latitude):
    """Highs and lows, (time, longitude, latitude), that travel: to the east, in the tropics to the
    west; of about 1."""
    drift = 0.9 - 1.3 * np.cos(np.radians(latitude)) ** 6
    fresh = smooth(random, (times, 32, len(latitude)), 3)
    fresh /= fresh.std()
    state, states = fresh[0], []
    for field in fresh:
        state = 0.98 * shifted(state, drift) + 0.2 * field
        states.append(state)
    return np.stack(states).astype("f4")


def make_era5(path):
    random = np.random.default_rng(5)
    time = np.arange("2020-01-01", "2022-01-01", np.timedelta64(6, "h"), dtype="M8[ns]")
    latitude, longitude = np.linspace(-84.375, 84.375, 16), np.arange(0, 360, 11.25)
    level = np.array([500, 700, 850])
    plane = (len(time), len(longitude), len(latitude))
    flat, high = ("time", "longitude", "latitude"), ("time", "level", "longitude", "latitude")
    climate = (288 - 40 * np.sin(np.radians(latitude)) ** 2).astype("f4")
    year = np.arange(len(time)) / 1461 * 2 * np.pi
    season = (np.cos(year)[:, None] * -10 * np.sin(np.radians(latitude))).astype("f4")[:, None]
    highs = weather(random, len(time), latitude)
    t2m = climate + season + 4 * np.roll(highs, 1, axis=1) + 0.15 * smooth(random, plane)
    wind = 5 * (np.roll(highs, -1, axis=2) - highs) + 0.5 * smooth(random, plane)
    rain = np.maximum(smooth(random, plane), 0) * np.float32(1e-3)
    z500 = np.array([54000, 29000, 14000], "f4")[:, None, None]
    geopotential = z500 + 900 * highs[:, None] + 40 * smooth(random, (len(time), 3, *plane[1:]), 1)
    dataset = xr.Dataset(
        {"2m_temperature": (flat, t2m, {"units": "K"}),
         "10m_u_component_of_wind": (flat, wind, {"units": "m s**-1"}),
         "total_precipitation_6hr": (flat, rain, {"units": "m"}),
         "geopotential": (high, geopotential, {"units": "m**2 s**-2"}),
         "land_sea_mask": (flat[1:], land())},
        {"time": time, "level": ("level", level, {"units": "hPa"}),
         "longitude": ("longitude", longitude, {"units": "degrees_east"}),
         "latitude": ("latitude", latitude, {"units": "degrees_north"})})
    encoding = {name: {"chunks": (100, *dataset[name].shape[1:])} for name in list(dataset)[:4]}
    dataset.to_zarr(path, zarr_format=2, consolidated=True, encoding=encoding)


def make_imerg(path):
    random = np.random.default_rng(11)
    time = np.arange("2020-01-01", "2020-03-01", np.timedelta64(30, "m"), dtype="M8[ns]")
    lon, lat = np.arange(0, 360, 11.25, dtype="f4"), np.linspace(-84.375, 84.375, 16, dtype="f4")
    rain = np.maximum(smooth(random, (len(time), len(lon), len(lat))) - 1, 0)
    dataset = xr.Dataset({"precipitation": (("time", "lon", "lat"), rain, {"units": "mm/hr"})},
                         {"time": time, "lon": ("lon", lon, {"units": "degrees_east"}),
                          "lat": ("lat", lat, {"units": "degrees_north"})})
    dataset.to_zarr(path, zarr_format=2, consolidated=True,
                    encoding={"precipitation": {"chunks": (48, 32, 16)}})


def make_oisst(path):
    random = np.random.default_rng(13)
    time = np.arange("2020-01-01", "2022-01-01", np.timedelta64(1, "D"), dtype="M8[ns]")
    lat, lon = np.linspace(-87.5, 87.5, 36, dtype="f4"), np.arange(-177.5, 180, 5, dtype="f4")
    sst = (290 - 20 * np.sin(np.radians(lat))[:, None] ** 2
           + smooth(random, (len(time), len(lat), len(lon))))
    dataset = xr.Dataset({"sst": (("time", "lat", "lon"), sst.astype("f4"), {"units": "K"})},
                         {"time": time, "lat": ("lat", lat, {"units": "degrees_north"}),
                          "lon": ("lon", lon, {"units": "degrees_east"})})
    dataset.to_zarr(path, zarr_format=2, consolidated=True,
                    encoding={"sst": {"chunks": (30, 36, 72)}})


def make_gefs(path, member):
    random = np.random.default_rng(100 + member)
    time = np.arange("2020-01-01", "2020-03-01", np.timedelta64(6, "h"), dtype="M8[ns]")
    latitude, longitude = np.linspace(-80, 80, 9), np.arange(0, 360, 20.0)
    t2m = 288 + 5 * smooth(random, (len(time), len(latitude), len(longitude)))
    dataset = xr.Dataset(
        {"temperature_2m": (("time", "latitude", "longitude"), t2m, {"units": "K"})},
        {"time": time, "latitude": ("latitude", latitude, {"units": "degrees_north"}),
         "longitude": ("longitude", longitude, {"units": "degrees_east"})})
    dataset.to_zarr(path, zarr_format=3, consolidated=False,
                    encoding={"temperature_2m": {"chunks": (20, 9, 18)}})


def make_cmip6(path):
    random = np.random.default_rng(6)
    lat, lon = np.linspace(-78.75, 78.75, 8), np.arange(0, 360, 22.5)
    months = np.arange(1850 * 12, 2015 * 12)
    month_starts = np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])
    lengths = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    first = (months // 12 - 1850) * 365.0 + month_starts[months % 12]
    bounds = np.stack([first, first + lengths[months % 12]], axis=1)
    warming = (months / 12 - 1850)[:, None, None] * 0.008
    on_land = land().T.reshape(len(lat), 2, len(lon), 2).mean((1, 3))
    north = np.sin(np.radians(lat))[:, None]
    season = -np.cos((months % 12 - 0.5) * np.pi / 6)[:, None, None] * (3 + 9 * on_land) * north
    noise = smooth(random, (len(months), len(lat), len(lon)))
    for month in range(1, len(noise)):  # the sea remembers the last month
        noise[month] += (0.8 - 0.5 * on_land) * noise[month - 1]
    tas = (299 - 45 * north ** 2 + season + warming * (1 + on_land) + 0.5 * noise).astype("f4")
    dataset = xr.Dataset(
        {"tas": (("time", "lat", "lon"), tas, {"units": "K", "cell_measures": "area: areacella"}),
         "time_bnds": (("time", "bnds"), bounds)},
        {"time": ("time", bounds.mean(axis=1),
                  {"units": "days since 1850-01-01", "calendar": "noleap", "bounds": "time_bnds"}),
         "lat": ("lat", lat, {"units": "degrees_north"}),
         "lon": ("lon", lon, {"units": "degrees_east"}), "height": ((), 2.0, {"units": "m"})})
    dataset.to_zarr(path, zarr_format=2, consolidated=True,
                    encoding={"tas": {"chunks": (600, 8, 16)}})


# Reflectances of classes of the scene classification in the bands b02, b03, b04, b05, b08, b11,
# b12.
BANDS = ("b02", "b03", "b04", "b05", "b08", "b11", "b12")
REFLECTANCES = {
    3: (0.02, 0.03, 0.02, 0.03, 0.08, 0.05, 0.03),  # shadow of clouds
    4: (0.03, 0.06, 0.03, 0.10, 0.40, 0.20, 0.09),  # vegetation
    5: (0.10, 0.14, 0.18, 0.22, 0.28, 0.36, 0.30),  # bare soil
    6: (0.05, 0.05, 0.03, 0.03, 0.02, 0.01, 0.01),  # water
    8: (0.35, 0.36, 0.37, 0.38, 0.42, 0.32, 0.25),  # cloud, of medium probability
    9: (0.60, 0.60, 0.60, 0.62, 0.65, 0.45, 0.35),  # cloud, of high probability
}


def scene(random, size):
    """Classes of a made-up landscape under a few clouds, (y, x)."""
    ground, clouds = (smooth(random, (size, size), passes) for passes in (40, 20))
    ground, clouds = ((field - field.mean()) / field.std(dtype="f8") for field in (ground, clouds))
    classes = np.select([ground < -0.5, ground > 0.5], [6, 5], 4)
    classes[np.roll(clouds, (8, -8), (0, 1)) > 1.5] = 3
    classes[clouds > 1.2] = 8
    classes[clouds > 1.5] = 9
    return classes.astype("u1")


def make_sentinel2(path):
    random = np.random.default_rng(2)
    shuffled = Blosc(cname="zstd", clevel=3, shuffle=Blosc.BITSHUFFLE)
    root = zarr.create_group(path, zarr_format=2)
    classes = scene(random, 240)
    scenes = {"r10m": (10, ("b02", "b03", "b04", "b08")), "r20m": (20, ("b05", "b11", "b12"))}
    for name, (metres, bands) in scenes.items():
        size = 4800 // metres
        group = root.create_group(f"measurements/reflectance/{name}")
        write_axes(group, metres, size)
        seen = classes.repeat(20 // metres, axis=0).repeat(20 // metres, axis=1)
        for band in bands:
            table = np.zeros(12)
            table[list(REFLECTANCES)] = [values[BANDS.index(band)]
                                         for values in REFLECTANCES.values()]
            reflectance = (table[seen] + 0.01 * smooth(random, (size, size))
                           + 0.02 * random.standard_normal((size, size)))
            values = (reflectance * 10000 + 1000).clip(1, 65535).astype("u2")
            values[: size // 8, : size // 6] = 0  # outside of the swath
            array = group.create_array(band, data=values, chunks=(size // 2, size // 2),
                                       compressors=shuffled, fill_value=0)
            array.attrs.update({"_ARRAY_DIMENSIONS": ["y", "x"], "scale_factor": 0.0001,
                                "add_offset": -0.1, "valid_min": 1})
    group = root.create_group("conditions/mask/l2a_classification/r20m")
    write_axes(group, 20, 240)
    classes[:30, :40] = 0
    group.create_array("scl", data=classes, chunks=(120, 120), compressors=shuffled, fill_value=0)
    group["scl"].attrs.update({"_ARRAY_DIMENSIONS": ["y", "x"]})
    zarr.consolidate_metadata(path)


def write_axes(group, metres, size):
    for name, first, step in (("x", 600000, metres), ("y", 5100000, -metres)):
        values = first + step / 2 + step * np.arange(size, dtype="i8")
        array = group.create_array(name, data=values.astype("i8"), chunks=(size,), compressors=None)
        array.attrs.update({"_ARRAY_DIMENSIONS": [name], "units": "m"})


def nuclei(random, shape, count):
    """Numbers of ellipsoids, (z, y, x), 0 outside of them; and the brightness of shells around
    them."""
    z, y, x = np.ogrid[tuple(slice(size) for size in shape)]
    labels, membrane = np.zeros(shape, "i4"), np.zeros(shape, "f4")
    for number in range(1, count + 1):
        middle, radii = random.uniform(0, 1, 3) * shape, random.uniform((2, 7, 7), (4, 14, 14))
        distance = sum(((axis - at) / radius) ** 2
                       for axis, at, radius in zip((z, y, x), middle, radii)) ** 0.5
        labels[(distance < 1) & (labels == 0)] = number
        membrane = np.maximum(membrane, np.exp(-(((distance - 1.2) / 0.15) ** 2)))
    return labels, membrane


def make_cells(path):
    random = np.random.default_rng(9)
    shape = (2, 4, 256, 256)
    labels, membrane = nuclei(random, shape[1:], 70)
    image = (1200 + 100 * smooth(random, shape) + 600 * random.standard_normal(shape)
             + 1500 * np.stack([labels > 0, membrane]))
    image = image.clip(0).astype("u2")

    def write(group, pyramid, axes, scale, extra=None):
        for number, level in enumerate(pyramid):
            group.create_array(str(number), data=level, chunks=(1,) * (level.ndim - 2) + (64, 64))
        datasets = [
            {"path": str(number), "coordinateTransformations": [
                {"type": "scale", "scale": [*scale[:-2], *(s * 2 ** number for s in scale[-2:])]}]}
            for number in range(len(pyramid))]
        kinds = {"c": {"type": "channel"}, "z": {"type": "space", "unit": "micrometer"}}
        named = [{"name": axis, **kinds.get(axis, kinds["z"])} for axis in axes]
        group.attrs.update({"multiscales": [{"version": "0.4", "name": "image", "axes": named,
                                             "datasets": datasets}]} | (extra or {}))

    def levels(array):
        return [array, array[..., ::2, ::2], array[..., ::4, ::4]]

    root = zarr.create_group(path, zarr_format=2)
    omero = {"omero": {"channels": [{"label": "DNA", "color": "0000FF",
                                     "window": {"start": 0, "end": 4000, "min": 0, "max": 65535}},
                                    {"label": "Actin", "color": "FF0000",
                                     "window": {"start": 0, "end": 4000, "min": 0, "max": 65535}}]}}
    write(root, levels(image), "czyx", [1.0, 0.5, 0.25, 0.25], omero)
    root.create_group("labels").attrs.update({"labels": ["cells"]})
    write(root.create_group("labels/cells"), levels(labels), "zyx", [0.5, 0.25, 0.25],
          {"image-label": {"version": "0.4"}})


def travelling(random, shape, passes):
    """Fields of about 1, (init_time, lead_time, y, x), that move to the east by a cell an hour."""
    inits, hours, height, width = shape
    field = smooth(random, (inits, height, width + hours), passes)
    field /= field.std()
    return np.stack([field[..., hours - hour:hours - hour + width] for hour in range(hours)],
                    axis=1)


def make_hrrr(path):
    random = np.random.default_rng(3)
    init = np.arange("2024-06-01", "2024-06-11", np.timedelta64(6, "h"), dtype="M8[ns]")
    lead = (np.arange(0, 19) * np.timedelta64(1, "h")).astype("m8[ns]")
    shape = (len(init), len(lead), 60, 80)
    y, x = 3000.0 * np.arange(60), 3000.0 * np.arange(80)
    places = {"latitude": (("y", "x"), 35 + y[:, None] / 111e3 + 0 * x),
              "longitude": (("y", "x"), -100 + x / 91e3 + 0 * y[:, None])}
    dims = ("init_time", "lead_time", "y", "x")
    fronts = travelling(random, shape, 12)
    temperature = (20 + 4 * np.tanh(3 * fronts) + 2 * travelling(random, shape, 8)
                   + 0.1 * smooth(random, shape))
    rain = (np.maximum(1 - np.abs(3 * fronts), 0)
            * np.maximum(travelling(random, shape, 6), 0) * np.float32(2e-3))
    dataset = xr.Dataset(
        {"temperature_2m": (dims, temperature.astype("f4"), {"units": "degree_Celsius"}),
         "precipitation_surface": (dims, rain.astype("f4"), {"units": "kg m-2 s-1"})},
        {"init_time": init, "lead_time": lead,
         "y": ("y", y, {"units": "m"}), "x": ("x", x, {"units": "m"}), **places,
         "spatial_ref": ((), 0, {"grid_mapping_name": "lambert_conformal_conic"})})
    encoding = {name: {"chunks": (1, 19, 30, 40), "shards": (4, 19, 60, 80)} for name in dataset}
    dataset.to_zarr(path, zarr_format=3, consolidated=False, encoding=encoding)


MAKERS = ({"era5": make_era5, "imerg": make_imerg, "oisst": make_oisst,
           "cmip6": make_cmip6, "sentinel2": make_sentinel2, "cells": make_cells, "hrrr": make_hrrr}
          | {f"gefs-{i}": functools.partial(make_gefs, member=i) for i in range(3)})


def make(name, folder="."):
    """The path of a store, which is made where it is missing."""
    path = pathlib.Path(folder) / f"{name}.zarr"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            MAKERS[name](unfinished)
        unfinished.rename(path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(MAKERS), metavar="NAME")
    parser.add_argument("--folder", default=".")
    arguments = parser.parse_args()
    for name in arguments.names:
        print(make(name, arguments.folder))
