// Events that a clock or the user signals to one rank, and to which all have to react alike: a
// number that each step adds up over the ranks.
#pragma once

#include <cstdint>

namespace tandem {

struct StepSignals {
  bool interrupted = false;  // this rank was asked to stop
  // By the clock of rank 0, the only one that sets them.
  bool time_is_up = false;  // max_time has passed
  bool log = false, evaluate = false, save = false;

  /// A sum of them over up to 65536 ranks is a whole number that float32 holds.
  float number() const {
    return static_cast<float>((interrupted ? 1 : 0) + (time_is_up ? first_bit : 0) +
                              (log ? 2 * first_bit : 0) + (evaluate ? 4 * first_bit : 0) +
                              (save ? 8 * first_bit : 0));
  }
  /// The signals that all ranks get from the sum.
  static StepSignals of_sum(double sum) {
    const auto bits = static_cast<std::int64_t>(sum);
    return {bits % first_bit != 0, (bits & first_bit) != 0, (bits & 2 * first_bit) != 0,
            (bits & 4 * first_bit) != 0, (bits & 8 * first_bit) != 0};
  }

 private:
  static constexpr std::int64_t first_bit = std::int64_t{1} << 17;
};

}  // namespace tandem
