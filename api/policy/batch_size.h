// batch_size = "auto": the largest size whose memory plan fits the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "api/model/model.h"
#include "engine/config/run_config.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The largest of the sizes that `config.batch_choice` allows whose plan fits, as `policy plan`
/// computes it for this configuration with the rules, devices and ranks of these options; the sizes
/// are powers of two up to 65536 and at most the number of training samples. Throws
/// Error{does_not_fit} where not even the smallest fits.
std::int64_t fitting_batch_size(const RunConfig& config, const PolicyOptions& options,
                                const DataOpener& open = &open_data);

/// The configuration with this batch size, which is no longer open.
RunConfig with_batch_size(RunConfig config, std::int64_t size);
/// The configuration with a batch size: where it is open, the one that fits, which `on_message`
/// reports.
RunConfig with_fitting_batch_size(RunConfig config, const PolicyOptions& options,
                                  const std::function<void(const std::string&)>& on_message = {});

/// How the size was found, for people: "batch_size 64: the largest power of two whose plan fits".
std::string batch_size_text(const RunConfig& open, std::int64_t size);

}  // namespace tandem::api
