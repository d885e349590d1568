#include "api/c/policy_source.h"

#include <string>

#include "api/c/guarded.h"

namespace tandem::c_library {

std::optional<api::Policy> given_policy(const char* path, const char* text, const char* config) {
  if (path != nullptr && text != nullptr) {
    throw bad_argument(std::string(config) + ".policy_text",
                       "either a file or a text is the policy");
  }
  if (text != nullptr) return api::Policy::parse(text);
  if (path == nullptr) return std::nullopt;
  return *path == '\0' ? api::Policy() : api::Policy::open(path);
}

}  // namespace tandem::c_library
