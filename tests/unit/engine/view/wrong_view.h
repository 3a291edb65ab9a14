#pragma once
// A view whose plans are wrong, as a mistake in batchfs could make them.

#include <functional>
#include <utility>

#include "engine/view/view.h"

namespace batchfs {

/// The plans of a view of one tensor of one variable, changed. Two samples in a batch.
class WrongView final : public View {
 public:
  WrongView(std::shared_ptr<const Dataset> dataset, const std::string& json, std::string variable,
            std::function<void(BatchPlan&)> change)
      : View(dataset, parse_view_spec(json, "wrong", "test", {})),
        right_(View::parse(dataset, json, "right", "test")),
        change_(std::move(change)) {
    window_dims_ = right_->window_dims();
    tensors_ = right_->tensors();
    use_variable(variable, variable);
    add_converter(0, 0, tensors_[0].type);
  }

  std::int64_t samples() const override { return right_->samples(); }
  std::int64_t batch_size() const override { return right_->batch_size(); }
  std::int64_t batches() const override { return right_->batches(); }
  std::vector<Dims> shapes(std::int64_t batch) const override { return right_->shapes(batch); }
  std::int64_t row_count(std::int64_t batch) const override { return right_->row_count(batch); }
  std::vector<std::int64_t> samples_in(std::int64_t epoch, std::int64_t batch,
                                       RowRange range) const override {
    return right_->samples_in(epoch, batch, range);
  }
  std::vector<BatchCoordinate> batch_coordinates(std::int64_t epoch,
                                                 std::int64_t batch) const override {
    return right_->batch_coordinates(epoch, batch);
  }
  using View::plan;
  BatchPlan plan(std::int64_t epoch, std::int64_t batch, PlanLimit) const override {
    BatchPlan plan = right_->plan(epoch, batch);
    change_(plan);
    return plan;
  }

 protected:
  std::vector<Row> rows(std::int64_t, std::int64_t, RowRange) const override { return {}; }
  void starts_of(std::int64_t sample, std::int64_t* starts) const override { starts[0] = sample; }

 private:
  const std::shared_ptr<const View> right_;
  const std::function<void(BatchPlan&)> change_;
};

}  // namespace batchfs
