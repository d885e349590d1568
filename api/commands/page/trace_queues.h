// The queues of a measured step, from the file of `tandem train --trace`.
#pragma once

#include "api/commands/page/page_error.h"

namespace tandem::api {

/// The last traced step in the form of a page's timeline; null where the file has none.
PageJson trace_queues(const PageJson& trace);

}  // namespace tandem::api
