// The attributes that a page offers to set, from the table of a policy's keys.
#pragma once

#include "api/commands/page/page_error.h"

namespace tandem::api {

/// Each with its values where these are few. `devices`: `{name, use}` of each.
PageJson attributes_json(const PageJson& devices);

}  // namespace tandem::api
