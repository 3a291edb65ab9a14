#pragma once
// The objects of an output: which exist, and how they get their values from samples and parts.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/write/prediction/open_objects.h"
#include "engine/write/prediction/placement.h"
#include "engine/write/prediction/prediction_documents.h"
#include "engine/write/prediction/prediction_folder.h"
#include "engine/write/prediction/sample_parts.h"

namespace batchfs {

/// Thread-safe.
class PredictionObjects {
 public:
  /// Throws as PredictionWriter. Writes nothing.
  PredictionObjects(std::vector<PredictedArray> arrays, PredictionSamples samples,
                    const PredictionOptions& options, const PredictionFolder& folder);

  const std::vector<Placement>& placements() const { return placements_; }
  const PredictionSamples& samples() const { return samples_; }
  /// Names the run: see run_identity.h.
  const Json& identity() const { return identity_; }

  /// The row of a sample. Throws invalid_argument.
  std::size_t row_of(std::int64_t sample) const;
  const std::int64_t* starts_of(std::size_t row) const;

  bool is_there(const ObjectKey& key) const;
  /// For each object of an array: does it exist?
  std::vector<bool> objects_there(std::size_t array) const;
  /// For each sample: is it in an existing object, or in parts, in all arrays?
  std::vector<bool> samples_there() const;
  /// Objects of all arrays that need samples and are not there.
  std::uint64_t objects_lacking() const;

  /// The samples of an object that are in parts. Throws invalid_argument for others than those of
  /// the epoch.
  std::set<std::int64_t> samples_in_parts(const ObjectKey& key) const;
  std::vector<ObjectKey> objects_with_parts() const;

  /// Puts the object if these samples and those in parts are all of it; else keeps these as a part.
  /// True: the object exists.
  bool add(const ObjectKey& key, ObjectSamples samples) const;
  void put_part(const ObjectKey& key, const ObjectSamples& samples) const;
  /// Objects of which all samples are in parts: ranks that were killed could not put them.
  void put_complete() const;
  /// Coordinates and documents: afterwards the output is finished.
  void put_rest() const;

 private:
  std::uint64_t bytes_in(const ObjectKey& key, std::int64_t sample) const;
  std::string object_key(const ObjectKey& key) const;
  void put(const ObjectKey& key, const ObjectSamples& samples) const;

  const PredictionFolder& folder_;
  const PredictionSamples samples_;
  const Overlap overlap_;
  std::vector<Placement> placements_;
  std::unique_ptr<const PredictionDocuments> documents_;
  Json identity_;
  std::unique_ptr<SampleParts> parts_;
};

}  // namespace batchfs
