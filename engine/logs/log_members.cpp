#include "engine/logs/log_members.h"

#include <algorithm>
#include <iterator>

namespace tandem {
namespace {

constexpr std::string_view members[] = {"phase",
                                        "step",
                                        "wall",
                                        "terms",
                                        "gradient_norm",
                                        "loss_scale",
                                        "skipped_steps",
                                        "lr",
                                        "samples_per_second"};
constexpr std::string_view heads[] = {"data.", "norm.", "ranks."};

}  // namespace

bool is_log_member(std::string_view name) {
  return std::find(std::begin(members), std::end(members), name) != std::end(members) ||
         std::any_of(std::begin(heads), std::end(heads),
                     [&](std::string_view head) { return name.starts_with(head); });
}

std::string logged_term(const std::string& name) {
  return name == "loss" || is_log_member(name) ? "loss." + name : name;
}

}  // namespace tandem
