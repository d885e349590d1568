// Networks whose inputs are ids of embedding tables.
#include <fmt/format.h>

#include <algorithm>

#include "api/init/networks/network.h"
#include "engine/config/keys/config_value.h"

namespace tandem::api::networks {
namespace {

bool is_recommender(const ModelFacts& model) { return !model.tables.empty(); }

void optimize_recommender(const ModelFacts& model, const RunLength&, GuessedSection& optimizer) {
  std::vector<const TableFacts*> wide, deep;
  for (const TableFacts& table : model.tables) (table.width == 1 ? wide : deep).push_back(&table);
  std::string groups;
  const auto add = [&](const std::vector<const TableFacts*>& tables, const std::string& options) {
    for (const std::string& selector : table_selectors(model, tables))
      groups += fmt::format("\n  {{ at = {}, {} }},", toml_string(selector), options);
  };
  add(wide, "kind = \"ftrl\", lr = 0.05");
  add(deep, "kind = \"lazy_adam\"");
  optimizer.keys = {
      {"kind", "\"adam\"", "of the dense layers (arXiv:1412.6980)", ""},
      {"lr", "1e-3", "the publication's and PyTorch's default", ""},
      {"groups", "[" + groups + "\n]",
       std::string("embedding tables update only the rows that a batch names (lazy_adam)") +
           (wide.empty() ? ""
                         : "; tables of one number a row are linear models, which FTRL is made for "
                           "(Wide & Deep, arXiv:1606.07792)"),
       ""},
  };
}

}  // namespace

Network recommender() {
  return {.name = "a network over embedding tables",
          .is = is_recommender,
          .optimize = optimize_recommender,
          .least_batch = 32,
          .most_batch = 1024,
          .samples_a_step = 100};
}

}  // namespace tandem::api::networks
