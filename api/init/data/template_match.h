// Compares what a tokenizer's Jinja text writes with the templates that have a name.
#pragma once

#include <string>

#include "api/init/data/own_template.h"

namespace tandem::api {

/// Sets all members but `file` and `shown`. The two tokens are what `bos_token` and `eos_token`
/// stand for; "": the tokenizer does not say.
void match_template(const std::string& jinja, const std::string& begin_token,
                    const std::string& end_token, OwnTemplate& own);

}  // namespace tandem::api
