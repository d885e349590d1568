// Shows a run in the browser while it trains.
#pragma once

#include "tandem/trainer.h"

namespace tandem::tool {

/// Starts `tandem policy page` for the run directory, with the run's options, as a process of its
/// own: at the lowest priority, read-only, with the address on standard error. It ends with this
/// process. Says on standard error where it cannot be started; the run goes on.
void start_live_page(const std::string& run_dir, const api::TrainOptions& options);

}  // namespace tandem::tool
