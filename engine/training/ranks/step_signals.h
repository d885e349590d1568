// What a clock or the user tells one rank, and all have to do alike: a number that each step adds
// up over the ranks.
#pragma once

#include <cstdint>

namespace tandem {

struct StepSignals {
  bool interrupted = false;  // somebody asks this rank to stop
  // By the clock of rank 0, which alone sets them.
  bool time_is_up = false;  // of max_time
  bool log = false, evaluate = false, save = false;

  /// A sum of them over up to 65536 ranks is a whole number that float32 holds.
  float number() const {
    return static_cast<float>((interrupted ? 1 : 0) + (time_is_up ? first_bit : 0) +
                              (log ? 2 * first_bit : 0) + (evaluate ? 4 * first_bit : 0) +
                              (save ? 8 * first_bit : 0));
  }
  /// What all ranks are told.
  static StepSignals of_sum(double sum) {
    const auto bits = static_cast<std::int64_t>(sum);
    return {bits % first_bit != 0, (bits & first_bit) != 0, (bits & 2 * first_bit) != 0,
            (bits & 4 * first_bit) != 0, (bits & 8 * first_bit) != 0};
  }

 private:
  static constexpr std::int64_t first_bit = std::int64_t{1} << 17;
};

}  // namespace tandem
