// The list of formats that log.also names.
#include <algorithm>

#include "engine/training/logs/metrics_log.h"

namespace tandem {
namespace {

constexpr LogFormat log_formats[] = {
    {"csv", open_csv_log},
    {"tensorboard", open_tensorboard_log, /*takes_histograms=*/true},
};

}  // namespace

std::span<const LogFormat> all_log_formats() { return log_formats; }

const LogFormat* find_log_format(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(log_formats), std::end(log_formats),
                   [&](const LogFormat& format) { return format.name == name; });
  return found == std::end(log_formats) ? nullptr : found;
}

}  // namespace tandem
