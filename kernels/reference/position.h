// Walks the elements of a strided operand in row-major order of its shape.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/types.h"

namespace tandem::reference {

/// The place of one element after the other. Prepared once; `reset` and `next` do not allocate.
class Position {
 public:
  Position() = default;
  Position(Shape shape, std::vector<std::int64_t> strides, std::int64_t offset = 0)
      : shape_(std::move(shape)),
        strides_(std::move(strides)),
        offset_(offset),
        index_(shape_.size()) {
    count_ = element_count(shape_);
    reset();
  }

  std::int64_t count() const { return count_; }
  std::int64_t at() const { return at_; }
  std::int64_t index(std::size_t axis) const { return index_[axis]; }

  void reset() {
    at_ = offset_;
    for (std::int64_t& i : index_) i = 0;
  }

  /// After the last element the position is the first one again.
  void next() {
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      at_ += strides_[axis];
      if (++index_[axis] < shape_[axis]) return;
      at_ -= strides_[axis] * shape_[axis];
      index_[axis] = 0;
    }
  }

 private:
  Shape shape_;
  std::vector<std::int64_t> strides_;
  std::int64_t offset_ = 0, at_ = 0, count_ = 0;
  std::vector<std::int64_t> index_;
};

}  // namespace tandem::reference
