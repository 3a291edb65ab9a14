#pragma once
// Samples of objects whose other samples are elsewhere: in files beside the output.
//
// A part is a line of JSON, {"run", "samples", "bytes"}, then the samples' values. Parts of one
// object are read and removed under its lock (lock()).

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/write/prediction/prediction_folder.h"
#include "engine/write/prediction/sample_fold.h"

namespace batchfs {

/// Thread-safe.
class SampleParts {
 public:
  /// `run` identifies the arguments: parts of other runs are refused.
  SampleParts(const PredictionFolder& folder, std::string run, int rank);

  void put(const std::string& array, std::int64_t number, const ObjectSamples& samples);
  /// Numbers of the objects that have parts, ascending.
  std::vector<std::int64_t> numbers(const std::string& array) const;
  /// The samples in all parts of an object. Throws corrupt for files that are not parts of this
  /// run.
  std::set<std::int64_t> samples(const std::string& array, std::int64_t number) const;
  /// `bytes_of` returns the size of a sample's values in the object. Throws corrupt where a part
  /// has another size.
  ObjectSamples read(const std::string& array, std::int64_t number,
                     const std::function<std::uint64_t(std::int64_t sample)>& bytes_of) const;
  void discard(const std::string& array, std::int64_t number) const;
  /// Waits for it.
  std::unique_ptr<OutputStore::Lock> lock(const std::string& array, std::int64_t number) const;

 private:
  struct Header {
    std::vector<std::int64_t> samples;
    std::vector<std::uint64_t> bytes;
    std::uint64_t offset = 0;  // of the values, which end with the file
  };
  Header header(const std::string& key) const;
  [[noreturn]] void refuse(const std::string& key) const;

  const PredictionFolder& folder_;
  const std::string run_;
  const int rank_;
  const std::string token_;  // no two processes have one
};

}  // namespace batchfs
