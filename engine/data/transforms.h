// The functions of a field's `as` and `augment`, compiled for one sample type.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/functions/field_function.h"

namespace tandem {

/// A sequence of functions from one sample type to another.
class TransformPlan {
 public:
  /// The identity.
  explicit TransformPlan(TensorType from) : from_(from), to_(std::move(from)) {}

  /// From now on a whole number that a conversion to a signed integer type cannot hold becomes -1,
  /// which is no row of a table, and is no error.
  void narrow_ids() { narrows_ids_ = true; }
  /// Appends a function; throws std::invalid_argument (what is wrong) where it does not fit the
  /// type so far.
  void append(const Transform& transform);
  /// Appends a conversion of the element type, if it is another one.
  void append_cast(DType dtype);

  /// Keeps every byte what it is.
  bool only_copies() const { return steps_.empty(); }
  /// Keeps every whole number what it is, in another type at most.
  bool only_casts() const;

  /// Whether `run` may throw.
  bool may_refuse() const;

  const TensorType& from() const { return from_; }
  const TensorType& to() const { return to_; }

  /// Thread safe. Throws std::invalid_argument where a value does not fit (one_hot, integer types),
  /// NotWhole where an integer type is given a fraction or no number. Buffers of the
  /// calling thread are reused, so that nothing is allocated in steady state.
  void run(const void* from, const SampleKey& key, void* to) const { run(from, from_, key, to); }
  /// `own`: the type of this sample, where the first function takes any size.
  void run(const void* from, const TensorType& own, const SampleKey& key, void* to) const;
  bool takes_any_size() const {
    return !steps_.empty() && steps_.front().transform.function->takes_any_size();
  }

 private:
  struct Step {
    Transform transform;
    TensorType from, to;
    std::uint64_t place = 0;  // in the list; part of the random key
    bool narrows_ids = false;
  };

  TensorType from_, to_;
  std::vector<Step> steps_;  // without those that only rename axes
  std::uint64_t places_ = 0;
  bool narrows_ids_ = false;
};

}  // namespace tandem
