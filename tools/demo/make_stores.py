"""Makes winds.zarr and ocean.zarr from Debian's ferret-datasets. Usage: make_stores.py FOLDER"""

import pathlib
import shutil
import sys

import xarray as xr

DATA = pathlib.Path("/usr/share/ferret-vis/data")


def write(dataset, folder, chunks):
    if folder.exists():
        print(f"{folder} is there already")
        return
    for variable in dataset.variables.values():
        variable.encoding = {}
    encoding = {
        name: {"chunks": tuple(chunks.get(dim, dataset.sizes[dim]) for dim in dataset[name].dims)}
        for name in dataset.data_vars}
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    dataset.to_zarr(unfinished, encoding=encoding, consolidated=True)
    unfinished.rename(folder)
    print(f"made {folder}: {', '.join(dataset.data_vars)}")


def main(folder):
    winds = xr.open_dataset(DATA / "monthly_navy_winds.cdf")
    winds = winds.rename(TIME="time", FNOCY="latitude", FNOCX="longitude", UWND="u", VWND="v")
    write(winds, folder / "winds.zarr", {"time": 12})

    ocean = xr.open_dataset(DATA / "levitus_climatology.cdf").drop_vars("ZAXLEVITRedges")
    ocean = ocean.rename(ZAXLEVITR="depth", YAXLEVITR="latitude", XAXLEVITR="longitude",
                         TEMP="temperature", SALT="salinity")
    write(ocean, folder / "ocean.zarr", {"depth": 5, "latitude": 90, "longitude": 90})


main(pathlib.Path(sys.argv[1]))
