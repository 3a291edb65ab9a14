"""The sources keep what a reader needs: short functions and files, nothing dead, no crumbs of
headers, one meaning a type name.

The lists below hold the findings from when a rule was made. They may only shrink: a new finding
fails, and so does an entry that is not a finding any more.
"""

import collections
import re
import subprocess

import cpp_source
import pytest
from cpp_source import functions_in, product, without_texts

MAX_FUNCTION, MAX_LINES = 70, 500
SMALL_HEADER = 25
MAX_FILES_OF_A_TYPE_NAME = 2

# Functions that are longer, and how long they may be.
LONG_FUNCTIONS = {
    "engine/array/array.cc: fetch": 73,
    "engine/array/chunk_locator.cc: locate": 79,
    "engine/array/string_array.cc: read": 73,
    "engine/dataset/cf.cc: cf_decoding": 109,
    "engine/dataset/dataset.cc: Dataset": 101,
    "engine/pipeline/chunks/chunk_decoder.cc: decode": 103,
    "engine/scan/sweep.cc: read": 72,
    "engine/store/cloud/s3.cc: classify": 71,
    "engine/store/http/http_transfer.cc: prepare": 79,
    "engine/store/icechunk/snapshot.cc: parse": 80,
    "engine/view/spec.cc: parse_view_spec": 148,
    "engine/view/split/leak_check.cc: check_leaks": 73,
    "engine/zarr/data_type.cc: parse_typestr": 89,
    "engine/zarr/fill_value.cc: parse_fill_value": 77,
    "engine/zarr/metadata_v3.cc: parse_array_v3": 78,
    "fs/formats/preview.cc: add": 80,
    "fs/tree.cc: Tree": 101,
    "gpu/kernels/copy.cuh: fill_tile": 78,
    "gpu/kernels/fse.cuh: build_table": 82,
    "gpu/kernels/sequences.cuh: write_sequences": 86,
    "gpu/program/program_source.cc: begin": 72,
    "gpu/reader/socket_source.cc: SocketSource": 78,
    "tools/cli/store_options.cc: add_engine_options": 90,
    "tools/commands/serve.cc: serve": 77,
}

# Functions that only tests call.
ONLY_TESTED = {
    "codec_names",
    "compute_statistics",
    "import_fd",
    "is_another",
    "is_diverging",
    "sheets",
}

# Functions of public interfaces, and those that libraries and the system call.
CALLED_FROM_OUTSIDE = re.compile(r"batchfs_\w+|main|NB_MODULE|(start|end)_(array|object)|"
                                 r"number_(float|integer|unsigned)|~\w+|operator")

# Headers of at most 25 lines that one source includes, beside their own.
SMALL_HEADERS = {
    "engine/view/samples/where.h",
    "engine/array/looks_like.h",
    "engine/base/yaml.h",
    "engine/codec/crc32c.h",
    "engine/scan/joined_statistics.h",
    "engine/scan/verify_part.h",
    "engine/store/cloud/via/object_checksum.h",
    "engine/store/output/cloud_output.h",
    "engine/store/references/reference_json.h",
    "engine/store/references/snappy.h",
    "engine/store/zip/zip_store.h",
    "engine/telemetry/trace_json.h",
    "engine/view/coarsen/blocks.h",
    "engine/view/coarsen/coarse_labels.h",
    "engine/view/image_starter.h",
    "engine/view/mix/mix_counts.h",
    "engine/view/mix/mixed_plan.h",
    "engine/view/samples/every.h",
    "engine/write/prediction/prediction_chunks.h",
    "engine/zarr/leading_axis.h",
    "engine/zarr/ome/units.h",
    "engine/zarr/rerooted.h",
    "engine/zarr/unread_documents.h",
    "fs/export/tar.h",
    "fs/fuse/directory_page.h",
    "fs/fuse/forget_name.h",
    "fs/fuse/readahead.h",
    "fs/fuse/request_buffer.h",
    "fs/fuse/send_reply.h",
    "gpu/handoff/ask_state.h",
    "gpu/handoff/batch_message.h",
    "gpu/handoff/batch_slots.h",
    "gpu/handoff/packed_format.h",
    "gpu/handoff/reader_slots.h",
    "gpu/program/staged_pieces.h",
    "gpu/reader/dtype.h",
    "gpu/reader/fallbacks.h",
    "gpu/reader/file_labels.h",
    "gpu/stream/architectures.h",
    "tools/cli/failure_line.h",
    "tools/cli/stores/consolidated_above.h",
    "tools/cli/stores/named_stores.h",
    "tools/cli/stores/store_settings.h",
    "tools/cli/view_schema.h",
    "tools/inspect/stored_size.h",
    "tools/monitor/report_page.h",
    "tools/monitor/report_pictures.h",
    "tools/monitor/status_text.h",
    "tools/planning/box_union.h",
    "tools/planning/explanation_text.h",
    "tools/planning/window_table.h",
    "tools/service/mount_helper.h",
}

# Names of types that are declared in more than two files, and in how many.
TYPE_NAMES = {
    "Axis": 11, "Batch": 3, "Bytes": 3, "Counters": 3, "Entry": 11, "Environment": 5, "Event": 3,
    "File": 7, "Found": 3, "Group": 4, "Header": 6, "Held": 5, "Index": 3, "Job": 3, "Kind": 10,
    "Listing": 3, "Memory": 6, "Named": 3, "Open": 3, "Options": 20, "Order": 3, "Part": 9,
    "Pending": 4, "Piece": 4, "Place": 10, "Read": 3, "Reader": 6, "Reading": 3,
    "Record": 3, "Row": 4, "Rows": 4, "Run": 5, "Slot": 3, "Snapshot": 3, "Span": 3, "State": 11,
    "Statistics": 3, "Stream": 3, "Table": 3, "Target": 3, "Tensor": 6, "Threads": 3, "Type": 4,
    "Unit": 8, "Version": 3,
}


def words(sources):
    counts = collections.Counter()
    for text in sources.values():
        counts.update(re.findall(r"[A-Za-z_]\w*", without_texts(text)))
    return counts


def long_functions():
    found = {}
    for path, text in product().items():
        for function in functions_in(text):
            if function.is_definition and function.length > MAX_FUNCTION:
                key = f"{path}: {function.name}"
                found[key] = max(found.get(key, 0), function.length)
    return found


def test_functions_are_short():
    found = long_functions()
    assert {key: length for key, length in found.items()
            if length > LONG_FUNCTIONS.get(key, MAX_FUNCTION)} == {}
    assert [key for key in LONG_FUNCTIONS if key not in found] == []


def test_files_are_short():
    sources = {**product(), **cpp_source.test_sources()}
    assert {path: text.count("\n") for path, text in sources.items()
            if text.count("\n") > MAX_LINES} == {}


def uncalled():
    """Names of functions that the product only declares and defines."""
    declared, overrides = collections.Counter(), set()
    for text in product().values():
        for function in functions_in(text):
            declared[function.name] += 1
            if re.search(r"\boverride\b", function.head):
                overrides.add(function.name)
    used = words(product())
    return {name for name, count in declared.items() if used[name] <= count
            and name not in overrides and not CALLED_FROM_OUTSIDE.fullmatch(name)}


def test_each_function_is_called():
    used_by_tests = words(cpp_source.test_sources())
    found = uncalled()
    assert sorted(name for name in found if used_by_tests[name] == 0) == []
    assert sorted(found) == sorted(ONLY_TESTED)


def includers():
    """{header: the files that include it}."""
    found = collections.defaultdict(set)
    for path, text in {**product(), **cpp_source.test_sources()}.items():
        for name in re.findall(r'#\s*include\s+["<]([^">]+)[">]', text):
            found[name].add(path)
    return found


def test_each_header_is_included():
    found = includers()
    headers = [path for path in (*product(), *cpp_source.test_sources())
               if path.endswith((".h", ".cuh"))]
    assert len(headers) > 500
    assert [h for h in headers
            if h not in found and not any(h.endswith("/" + name) for name in found)] == []


def test_small_headers_have_several_users():
    found, small = includers(), set()
    for header, text in product().items():
        stem = header.rsplit(".", 1)[0]
        users = {user for user in found[header]
                 if user in product() and user.rsplit(".", 1)[0] != stem}
        if header.endswith((".h", ".cuh")) and text.count("\n") <= SMALL_HEADER and len(users) <= 1:
            small.add(header)
    assert sorted(small - SMALL_HEADERS) == []
    assert sorted(SMALL_HEADERS - small) == []


def test_a_type_name_stands_for_one_thing():
    files = collections.defaultdict(set)
    declared = re.compile(r"^\s*(?:template\s*<[^{;]*>\s*)?(?:struct|class|enum class|enum|union) "
                          r"(?:alignas\(\w+\) )?([A-Z]\w*)\b(?!::)[^;(){}=]*\{", re.M)
    for path, text in product().items():
        for name in declared.findall(without_texts(text)):
            files[name].add(path)
    assert len(files) > 1000
    assert {name: len(paths) for name, paths in files.items()
            if len(paths) > MAX_FILES_OF_A_TYPE_NAME} == TYPE_NAMES


def test_cmake_files_fit_the_page_and_name_their_sources():
    """No line beyond 100 columns, no source that is turned off as a header, none chosen by a
    regular expression over names."""
    names = subprocess.run(["git", "ls-files", "*CMakeLists.txt", "*.cmake"], cwd=cpp_source.ROOT,
                           check=True, capture_output=True, text=True)
    files = [cpp_source.ROOT / name for name in names.stdout.split()]
    assert len(files) > 5
    found = []
    for path in files:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > 100 or "HEADER_FILE_ONLY" in line or re.search(r"FILTER .*REGEX", line):
                found.append(f"{path.relative_to(cpp_source.ROOT)}:{number}: {line}")
    assert not found


SAMPLE = '''
namespace a {
constexpr int kTable[] = {
    1,
};
int declared(int x);
template <class T>
T with_body(const std::vector<T>& v) {
  if (v.empty()) {
    return T{"} // "};
  }
  const auto inner = [&] { return called(v); };
  return R"({
int not_one() {
})";
}
class C : public B {
 public:
  C(int a)
      : B(a),
        a_(a) {
    run();
  }
  ~C() override;
  // int commented(int x);
  int one_line() const { return a_; }
  bool operator==(const C&) const = default;

 private:
  struct Nested {
    void in_nested();
  };
  int a_ = compute(3);
  std::function<void(int)> done_;
};
}  // namespace a
'''


def test_the_reader_of_sources_finds_functions():
    found = functions_in(SAMPLE)
    assert [function.name for function in found] == ["declared", "with_body", "C", "~C", "one_line",
                                                     "operator", "in_nested"]
    assert [function.length for function in found] == [1, 10, 5, 1, 1, 1, 1]
    assert [function.name
            for function in found if function.is_definition] == ["with_body", "C", "one_line"]


@pytest.mark.parametrize(("text", "kept"),
                         [("f('a'); // b", "f(   );"), ('x = "// no"; y', 'x = ""      ; y'),
                          ("1'000", "10000")])
def test_texts_and_comments_are_left_out(text, kept):
    assert without_texts(text).split() == kept.split()
