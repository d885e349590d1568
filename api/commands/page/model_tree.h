// The model as nested modules: what a page shows as a table and as a tree.
#pragma once

#include <string>
#include <vector>

#include "api/commands/page/page_error.h"
#include "placement/match.h"

namespace tandem::api {

/// A module, or an operator or a parameter of the model.
struct TreeItem {
  enum class Kind { module, operation, added, parameter, buffer } kind = Kind::module;
  std::string path, name;  // name: the last part of the path
  int parent = -1;
  int index = -1;  // in PolicyItems: of the operator, or of the parameter
  std::string at;  // the selector of it and of all that is below it
};

class ModelTree {
 public:
  /// `items`: those of `graph`. `name`: what the root is called.
  ModelTree(const Graph& graph, const PolicyItems& items, const std::string& name);

  /// Parents first, children in the graph's order.
  const std::vector<TreeItem>& items() const { return items_; }
  /// The item of an operator or a parameter of PolicyItems.
  int of_operator(int index) const { return of_operator_[static_cast<std::size_t>(index)]; }
  int of_parameter(int index) const { return of_parameter_[static_cast<std::size_t>(index)]; }
  /// What never changes: `items` of /api/model.
  PageJson json(const Graph& graph, const PolicyItems& items) const;

 private:
  std::vector<TreeItem> items_;
  std::vector<int> of_operator_, of_parameter_;
};

}  // namespace tandem::api
