#include "engine/data/transforms.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem {

void TransformPlan::append(const Transform& transform) {
  const bool goes_on = !steps_.empty() && steps_.back().to.dtype == DType::float32 &&
                       to_.dtype == DType::float32 &&
                       steps_.back().transform.function->computes_numbers() &&
                       transform.function->computes_numbers();
  if (goes_on) steps_.back().to.dtype = to_.dtype = DType::float64;
  Step step{.transform = transform,
            .from = to_,
            .to = transform.function->type_of(to_),
            .place = places_++,
            .narrows_ids = narrows_ids_};
  to_ = step.to;
  if (!transform.function->only_copies(step.from)) steps_.push_back(std::move(step));
}

bool TransformPlan::only_casts() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.transform.function->keeps_whole_numbers();
  });
}

bool TransformPlan::may_refuse() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.transform.function->may_refuse(step.from);
  });
}

void TransformPlan::append_cast(DType dtype) {
  if (dtype != to_.dtype) append(cast_to(dtype));
}

void TransformPlan::run(const void* from, const TensorType& own, const SampleKey& key,
                        void* to) const {
  if (only_copies()) {
    if (to_.bytes() > 0) std::memcpy(to, from, to_.bytes());
    return;
  }
  thread_local std::vector<std::uint64_t>
      scratch[2];  // words, so that every element type is aligned
  const void* at = from;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    void* next = to;
    if (i + 1 < steps_.size()) {
      std::vector<std::uint64_t>& buffer = scratch[i % 2];
      const std::size_t words = (steps_[i].to.bytes() + 7) / 8;
      if (buffer.size() < words) buffer.resize(words);
      next = buffer.data();
    }
    const Step& step = steps_[i];
    step.transform.function->run(
        {i == 0 ? own : step.from, step.to, at, next, key, step.place, step.narrows_ids});
    at = next;
  }
}

}  // namespace tandem
