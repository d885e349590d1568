// batch_size = "auto": the largest size whose memory plan fits the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/training/config/run_config.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The largest of the sizes that `config.batch_choice` allows whose plan fits, as `policy plan`
/// with these options computes it; the sizes are powers of two up to 65536 and at most the number
/// of training samples. Throws Error{does_not_fit} where not even the smallest fits.
std::int64_t fitting_batch_size(const RunConfig& config, const PolicyOptions& options);

/// `config` is what `options.config` reads as. Where its batch size is open, it is read again with
/// the size that fits, which `on_message` reports.
RunConfig with_batch_size(RunConfig config, const PolicyOptions& options,
                          const std::function<void(const std::string&)>& on_message = {});

/// How the size was found, for people: "batch_size 64: the largest power of two whose plan fits".
std::string batch_size_text(const RunConfig& open, std::int64_t size);

}  // namespace tandem::api
