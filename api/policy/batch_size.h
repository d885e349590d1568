// batch_size = "auto": the largest size whose memory plan fits the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/training/config/run_config.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The largest of the sizes of `config.batch_choice` whose plan fits, as `policy plan` with these
/// options finds it; of powers of two up to 65536 and the samples of the training data. Throws
/// Error{does_not_fit} where not even the least does.
std::int64_t fitting_batch_size(const RunConfig& config, const PolicyOptions& options);

/// `config` is what `options.config` reads as. Where its batch size is open it is read again with
/// the size that fits, of which `on_message` hears.
RunConfig with_batch_size(RunConfig config, const PolicyOptions& options,
                          const std::function<void(const std::string&)>& on_message = {});

/// How it was found, for people: "batch_size 64: the largest power of two whose plan fits".
std::string batch_size_text(const RunConfig& open, std::int64_t size);

}  // namespace tandem::api
