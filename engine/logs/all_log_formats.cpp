// The list of formats that log.also names.
#include "engine/config/keys/config_keys.h"
#include "engine/logs/metrics_log.h"

namespace tandem {
namespace {

constexpr LogFormat log_formats[] = {
    {"csv", open_csv_log},
    {"tensorboard", open_tensorboard_log, /*takes_histograms=*/true},
};

}  // namespace

std::span<const LogFormat> all_log_formats() { return log_formats; }

const LogFormat* find_log_format(std::string_view name) { return find_named(log_formats, name); }

}  // namespace tandem
