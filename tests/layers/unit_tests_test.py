"""Each source has a unit test of its name, or stands below with the suite that covers it."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Sources that need a mount, a terminal, a GPU, other processes or the command line. Add a new
# source only if a unit test could not check more than the suite does.
COVERED = {
    "engine/codec/checksum_codec.cc": "tests/unit/engine/codec/checksum_test.cc",
    "engine/codec/optional/without.cc": "tests/unit/engine/codec/optional/szip_test.cc",
    "engine/scan/statistics_pass.cc": "tests/unit/engine/scan/statistics_test.cc",
    "engine/scan/verify_form.cc": "tests/unit/engine/scan/verify_test.cc",
    "engine/store/cloud/cache_probe.cc": "tests/faults/test_via.py",
    "engine/store/cloud/azure_writing.cc": "tests/unit/engine/store/cloud/azure_test.cc",
    "engine/store/cloud/s3_writing.cc": "tests/unit/engine/store/cloud/s3_test.cc",
    "engine/store/cloud/writable_service.cc": "tests/unit/engine/store/cloud/gcs_test.cc",
    "engine/store/output/cloud_output.cc": "tests/cloud/test_s3_output.py",
    "engine/view/image_starter.cc": "tests/conformance/ome_test.py",
    "engine/view/list/label_positions.cc": "tests/conformance/list_test.py",
    "engine/view/list/list_groups.cc": "tests/conformance/list_test.py",
    "engine/view/list/list_reader.cc": "tests/conformance/list_test.py",
    "engine/view/list/list_spec.cc": "tests/conformance/list_test.py",
    "engine/view/list/listed_samples.cc": "tests/conformance/list_test.py",
    "engine/view/list/named_file.cc": "tests/conformance/list_test.py",
    "engine/view/list/restricted_list.cc": "tests/conformance/restricted_list_test.py",
    "engine/view/list/weighted_order.cc": "tests/conformance/weights_test.py",
    "engine/view/made/earth_coordinate.cc": "tests/conformance/made_test.py",
    "engine/view/made/made_channels.cc": "tests/conformance/made_test.py",
    "engine/view/made/made_kinds.cc": "tests/unit/engine/view/made/made_spec_test.cc",
    "engine/view/mixed_tensors.cc": "tests/conformance/mixing_test.py",
    "engine/view/samples/mask.cc": "tests/conformance/mask_test.py",
    "engine/view/samples/missing_counts.cc": "tests/conformance/missing_share_test.py",
    "engine/view/samples/skip_rule.cc": "tests/conformance/missing_share_test.py",
    "engine/view/samples/window_values.cc": "tests/conformance/mask_test.py",
    "engine/view/reached_numbers.cc": "tests/conformance/statistics_test.py",
    "engine/view/tensors/tensor_channels.cc":
        "tests/unit/engine/view/tensors/tensor_builder_test.cc",
    "engine/view/window_checks.cc": "tests/unit/engine/view/window_view_test.cc",
    "fs/export/export_form.cc": "tests/conformance/export_test.py",
    "fs/export/export_mds.cc": "tests/conformance/export_test.py",
    "fs/export/export_run.cc": "tests/conformance/export_test.py",
    "fs/export/export_webdataset.cc": "tests/conformance/export_test.py",
    "fs/export/export_zarr.cc": "tests/conformance/export_test.py",
    "fs/fuse/fuse_session.cc": "tests/mount/test_semantics_reading.py",
    "gpu/kernels/kernels.cu": "tests/gpu/device_test.cc",
    "gpu/program/plan.cc": "tests/unit/gpu/program/blosc_test.cc",
    "gpu/program/program.cc": "tests/unit/gpu/program/program_check_test.cc",
    "gpu/program/zstd_plan.cc": "tests/unit/gpu/kernels/zstd_test.cc",
    "gpu/reader/batch.cc": "tests/unit/gpu/reader/reader_test.cc",
    "gpu/reader/cuda/decoder_library.cc": "tests/gpu/handoff.py",
    "gpu/reader/cuda_decoder.cc": "tests/reader/test_libraries.py",
    "gpu/reader/cuda_driver.cc": "tests/gpu/handoff.py",
    "gpu/reader/device.cc": "tests/gpu/handoff.py",
    "gpu/stream/cuda_devices.cu": "tests/gpu/device_test.cc",
    "gpu/stream/device_runner.cu": "tests/gpu/batch_stream_test.cc",
    "gpu/stream/slot_memory.cu": "tests/gpu/batch_stream_test.cc",
    "tools/batchfs.cc": "tests/cli/test_usage.py",
    "tools/cli/interruption.cc": "tests/cli/test_scan.py",
    "tools/cli/levels.cc": "tests/conformance/ome_test.py",
    "tools/cli/ome_text.cc": "tests/conformance/ome_test.py",
    "tools/cli/progress.cc": "tests/cli/test_scan.py",
    "tools/cli/samples.cc": "tests/conformance/missing_test.py",
    "tools/cli/selected_values.cc": "tests/cli/test_cat.py",
    "tools/cli/store_options.cc": "tests/cli/test_usage.py",
    "tools/tasks/task_run.cc": "tests/cli/test_tasks.py",
    "tools/cli/terminal.cc": "tests/cli/test_pages.py",
    "tools/cli/value_writer.cc": "tests/cli/test_cat.py",
    "tools/cli/view_options.cc": "tests/cli/test_view_plan_batch.py",
    "tools/commands/batch.cc": "tests/cli/test_view_plan_batch.py",
    "tools/commands/cat.cc": "tests/cli/test_cat.py",
    "tools/commands/completion.cc": "tests/packaging/test_completion.py",
    "tools/commands/doctor.cc": "tests/cli/test_doctor.py",
    "tools/commands/export.cc": "tests/conformance/export_test.py",
    "tools/commands/inspect.cc": "tests/cli/test_inspect.py",
    "tools/commands/log.cc": "tests/cli/test_pages.py",
    "tools/commands/mount.cc": "tests/mount/test_recovery.py",
    "tools/commands/plan.cc": "tests/cli/test_view_plan_batch.py",
    "tools/commands/rechunk.cc": "tests/conformance/rechunk_test.py",
    "tools/commands/refresh.cc": "tests/mount/test_refresh.py",
    "tools/commands/report.cc": "tests/cli/test_pages.py",
    "tools/commands/serve.cc": "tests/reader/test_batches.py",
    "tools/commands/show.cc": "tests/cli/test_show.py",
    "tools/commands/statistics.cc": "tests/conformance/statistics_test.py",
    "tools/commands/status.cc": "tests/cli/test_pages.py",
    "tools/commands/top.cc": "tests/mount/test_looking_inside.py",
    "tools/commands/umount.cc": "tests/mount/test_recovery.py",
    "tools/commands/verify.cc": "tests/cli/test_check.py",
    "tools/commands/view.cc": "tests/cli/test_view_plan_batch.py",
    "tools/commands/warm.cc": "tests/cli/test_warm.py",
    "tools/doctor/check_caches.cc": "tests/faults/test_via.py",
    "tools/doctor/check_gpu.cc": "tests/cli/test_doctor.py",
    "tools/doctor/check_kernel.cc": "tests/cli/test_doctor.py",
    "tools/doctor/check_limits.cc": "tests/cli/test_doctor.py",
    "tools/doctor/check_modes.cc": "tests/cli/test_doctor.py",
    "tools/doctor/check_reading.cc": "tests/cli/test_doctor.py",
    "tools/doctor/check_store.cc": "tests/cli/test_doctor.py",
    "tools/inspect/inspect_text.cc": "tests/cli/test_inspect.py",
    "tools/inspect/inspected_array.cc": "tests/cli/test_inspect.py",
    "tools/monitor/report_pictures.cc": "tests/unit/tools/monitor/report_page_test.cc",
    "tools/python/src/module.cc": "tests/reader/test_batches.py",
    "tools/python/src/tensor.cc": "tests/reader/test_torch_tensors.py",
    "tools/planning/explanation_text.cc": "tests/cli/test_explain.py",
    "tools/show/coastline_data.cc": "tests/unit/tools/show/coastline_test.cc",
    "tools/show/colour_sets.cc": "tests/cli/test_show.py",
    "tools/show/show_page.cc": "tests/cli/test_show.py",
    "tools/show/shown_variable.cc": "tests/cli/test_show.py",
    "tools/show/shown_view.cc": "tests/cli/test_show.py",
    "tools/show/view_section.cc": "tests/cli/test_show.py",
    "tools/service/mount_helper.cc": "tests/packaging/test_mount_helper.py",
    "tools/service/mount_service.cc": "tests/packaging/test_service.py",
    "tools/service/served_store.cc": "tests/reader/test_state.py",
    "tools/service/serving.cc": "tests/reader/test_batches.py",
    "tools/service/serving_state.cc": "tests/reader/test_state.py",
    "tools/service/state_source.cc": "tests/reader/test_state.py",
    "tools/service/supervisor.cc": "tests/mount/test_recovery.py",
    "tools/writer/c_interface.cc": "tests/reader/test_writer_calls.py",
    "tools/writer/prediction_output.cc": "tests/reader/test_writer_library.py",
    "tools/cli/view_memory.cc": "tests/mount/test_many_labels.py",
}


def sources():
    for folder in ("engine", "fs", "gpu", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".cu") and ROOT / "tools/python/build" not in path.parents:
                yield path.relative_to(ROOT)


def has_unit_test(source):
    return (ROOT / "tests/unit" / source.with_name(source.stem + "_test.cc")).is_file()


def test_each_source_has_a_unit_test_or_a_suite():
    bare = [str(s) for s in sources() if not has_unit_test(s) and str(s) not in COVERED]
    assert bare == []


def test_the_list_names_what_is_there_and_needs_it():
    assert [s for s in COVERED if not (ROOT / s).is_file()] == []
    assert [t for t in COVERED.values() if not (ROOT / t).is_file()] == []
    assert [s for s in COVERED if has_unit_test(pathlib.PurePosixPath(s))] == []
