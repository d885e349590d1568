// Numbers that no run has written: whatever hashes say, a checkpoint that holds them is broken.
//
// A save refuses parameters and running statistics that are not finite, but for infinities that
// were there before training. A state of the optimizer that is nan or infinite makes its parameter
// so in the same step; only squares may be beyond float32 while the parameter stays as it is.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/formats/parallel_jobs.h"
#include "engine/graph/error.h"
#include "engine/graph/finiteness.h"
#include "engine/operators/update_kind.h"
#include "engine/runtime/file_pages.h"
#include "engine/train/checkpoints/checkpoint_format.h"
#include "engine/train/graph/loss_scale.h"

namespace tandem {
namespace {

enum Found : unsigned { negative = 1, infinite = 2, nan = 4 };  // may be or-ed

/// Whether a float32 lies below 0; that there is no nan is known.
bool has_negative(const void* data, std::int64_t count) {
  constexpr std::int64_t block = 1024;
  float values[block];
  for (std::int64_t at = 0; at < count; at += block) {
    const std::int64_t n = std::min(block, count - at);
    std::memcpy(values, static_cast<const float*>(data) + at,
                static_cast<std::size_t>(n) * sizeof(float));
    int bad = 0;
    for (std::int64_t i = 0; i < n; ++i) bad |= static_cast<int>(values[i] < 0);
    if (bad != 0) return true;
  }
  return false;
}

unsigned found_in(const HostTensor& tensor, bool squares, const ReadShare& share) {
  constexpr std::size_t range_bytes = std::size_t{8} << 20;
  const std::size_t element =
      tensor.type().bytes() /
      static_cast<std::size_t>(std::max<std::int64_t>(tensor.type().elements(), 1));
  const std::int64_t each = (tensor.type().elements() + share.of - 1) / share.of;
  const std::int64_t begin = std::min(each * share.number, tensor.type().elements());
  std::atomic<unsigned> found{0};
  parallel_row_ranges(
      file_threads(), std::min(each, tensor.type().elements() - begin), element, range_bytes,
      [&](std::int64_t first, std::int64_t count) {
        const char* const from = static_cast<const char*>(tensor.data()) +
                                 element * static_cast<std::size_t>(begin + first);
        const Finiteness worst = finiteness_of(tensor.dtype(), from, count);
        if (worst == Finiteness::nan) found |= nan;
        if (worst == Finiteness::infinite) found |= infinite;
        if (squares && tensor.dtype() == DType::float32 && has_negative(from, count))
          found |= negative;
        const std::size_t bytes = element * static_cast<std::size_t>(count);
        if (tensor.bytes() > range_bytes && is_file_mapping(from, bytes))
          drop_file_pages(from, bytes);
      });
  return found;
}

Diagnostic problem(const std::string& checkpoint, const std::string& name, const char* expected,
                   const char* got) {
  Diagnostic d;
  d.file = checkpoint;
  d.path = name;
  d.message = "holds a number that no run has written";
  d.expected = expected;
  d.got = got;
  return d;
}

}  // namespace

void expect_numbers(const std::string& path, const CheckpointContent& content,
                    const MayBeInfinite& may_be_infinite, const ReadShare& share) {
  std::vector<Diagnostic> problems;
  for (const NamedTensor& tensor : content.model) {
    if (!is_float(tensor.tensor.dtype())) continue;
    const unsigned found = found_in(tensor.tensor, false, share);
    if ((found & nan) != 0)
      problems.push_back(problem(path, tensor.name, "numbers", "nan"));
    else if ((found & infinite) != 0 && may_be_infinite && !may_be_infinite(tensor.name))
      problems.push_back(problem(path, tensor.name, "finite numbers", "inf"));
  }
  for (const NamedTensor& tensor : content.optimizer) {
    // restore_loss_scale checks its own states.
    if (!is_float(tensor.tensor.dtype()) || is_loss_scale_state(tensor.name)) continue;
    const std::string_view name = tensor.name;
    const bool squares = is_state_of_squares(name.substr(name.rfind('/') + 1));
    const unsigned found = found_in(tensor.tensor, squares, share);
    if ((found & nan) != 0)
      problems.push_back(problem(path, tensor.name, "numbers", "nan"));
    else if ((found & negative) != 0)
      problems.push_back(problem(path, tensor.name, "squares, 0 or more", "a number below 0"));
    else if ((found & infinite) != 0 && !squares)
      problems.push_back(problem(path, tensor.name, "finite numbers", "inf"));
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

}  // namespace tandem
