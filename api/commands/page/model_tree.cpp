#include "api/commands/page/model_tree.h"

#include <algorithm>
#include <map>

#include "engine/operators/operator.h"
#include "placement/names.h"
#include "placement/selectors/siblings.h"

namespace tandem::api {
namespace {

/// "a.b" of "a.b.c"; "" of "a".
std::string scope_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

/// A path as a selector that matches it alone.
std::string escaped(const std::string& path) {
  std::string at;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find_first_of(".:", start), path.size());
    at += selector_part(path.substr(start, end - start));
    if (end < path.size()) at += path[end];
    start = end + 1;
  }
  if (at.starts_with("re:")) at[0] = '?';
  return at;
}

/// Items in the order in which they are met, before they are put in the order of the tree.
class Growing {
 public:
  explicit Growing(const std::string& name) {
    TreeItem root;
    root.name = name;
    root.at = "**";
    items.push_back(std::move(root));
    children.emplace_back();
    modules_[""] = 0;
  }

  int module(std::string path) {
    constexpr std::size_t deepest = 64;  // parts; what is below is in one module
    std::size_t dot = path.find('.');
    for (std::size_t depth = 1; depth < deepest && dot != std::string::npos; ++depth)
      dot = path.find('.', dot + 1);
    path.resize(std::min(dot, path.size()));
    if (const auto known = modules_.find(path); known != modules_.end()) return known->second;
    const int parent = module(scope_of(path));
    TreeItem item;
    item.path = path;
    item.name = path.substr(scope_of(path).size() + (parent == 0 ? 0 : 1));
    item.at = escaped(path) + ".**";
    return modules_[path] = add(std::move(item), parent);
  }

  bool is_module(const std::string& path) const { return modules_.contains(path); }

  int add(TreeItem item, int parent) {
    item.parent = parent;
    items.push_back(std::move(item));
    children.emplace_back();
    const int index = static_cast<int>(items.size()) - 1;
    children[static_cast<std::size_t>(parent)].push_back(index);
    return index;
  }

  std::vector<TreeItem> items;
  std::vector<std::vector<int>> children;

 private:
  std::map<std::string, int> modules_;
};

}  // namespace

ModelTree::ModelTree(const Graph& graph, const PolicyItems& items, const std::string& name) {
  Growing growing(name);
  std::vector<int> scopes;  // the module of each operator
  for (std::size_t i = 0; i < items.operators.size(); ++i) {
    const PolicyItems::Operator& op = items.operators[i];
    scopes.push_back(growing.module(scope_of(op.path)));
    TreeItem item;
    item.kind = op.nodes.empty() ? TreeItem::Kind::added : TreeItem::Kind::operation;
    item.path = op.path;
    const std::string scope = scope_of(op.path);
    item.name = op.path.substr(scope.empty() ? 0 : scope.size() + 1);
    item.index = static_cast<int>(i);
    item.at = escaped(op.path);
    growing.add(std::move(item), scopes.back());
  }
  for (std::size_t p = 0; p < items.parameters.size(); ++p) {
    const PolicyItems::Parameter& parameter = items.parameters[p];
    const State& state = graph.states[static_cast<std::size_t>(parameter.state)];
    TreeItem item;
    const bool is_buffer = state.kind == StateKind::buffer;
    item.kind = is_buffer ? TreeItem::Kind::buffer : TreeItem::Kind::parameter;
    item.path = state.path.empty() ? state.name : state.path;
    item.name = item.path.substr(item.path.find_last_of(".:") + 1);
    item.index = static_cast<int>(p);
    item.at = escaped(item.path);
    const std::string scope = item.path.substr(0, item.path.find(':'));
    int parent = 0;
    if (!state.path.empty() && growing.is_module(scope))
      parent = growing.module(scope);
    else if (!parameter.readers.empty())
      parent = scopes[static_cast<std::size_t>(parameter.readers.front())];
    growing.add(std::move(item), parent);
  }

  of_operator_.resize(items.operators.size());
  of_parameter_.resize(items.parameters.size());
  const auto take = [&](auto&& self, int from, int parent) -> void {
    TreeItem item = growing.items[static_cast<std::size_t>(from)];
    item.parent = parent;
    const int index = static_cast<int>(items_.size());
    const bool is_parameter =
        item.kind == TreeItem::Kind::parameter || item.kind == TreeItem::Kind::buffer;
    if (item.index >= 0)
      (is_parameter ? of_parameter_ : of_operator_)[static_cast<std::size_t>(item.index)] = index;
    items_.push_back(std::move(item));
    for (const int child : growing.children[static_cast<std::size_t>(from)])
      self(self, child, index);
  };
  take(take, 0, -1);
}

PageJson ModelTree::json(const Graph& graph, const PolicyItems& items) const {
  const std::vector<NameRow> rows = policy_names(graph);
  std::map<std::string, const NameRow*> row_of;  // operators and parameters have no common path
  for (const NameRow& row : rows) row_of.try_emplace(row.path, &row);
  std::vector<int> operators(items_.size(), 0), parameters(items_.size(), 0);
  for (std::size_t i = items_.size(); i-- > 0;) {
    if (items_[i].kind == TreeItem::Kind::operation) ++operators[i];
    if (items_[i].kind == TreeItem::Kind::parameter) ++parameters[i];
    if (items_[i].parent < 0) continue;
    operators[static_cast<std::size_t>(items_[i].parent)] += operators[i];
    parameters[static_cast<std::size_t>(items_[i].parent)] += parameters[i];
  }
  PageJson list = PageJson::array();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const TreeItem& item = items_[i];
    constexpr const char* kinds[] = {"module", "operator", "added", "parameter", "buffer"};
    PageJson json{{"kind", kinds[static_cast<int>(item.kind)]},
                  {"path", item.path},
                  {"name", item.name},
                  {"parent", item.parent < 0 ? PageJson() : PageJson(item.parent)},
                  {"at", item.at}};
    if (item.kind == TreeItem::Kind::module) {
      json["operators"] = operators[i];
      json["parameters"] = parameters[i];
    }
    if (const auto row = row_of.find(item.path); item.index >= 0 && row != row_of.end()) {
      json["shape"] = row->second->shape;
      json["dtype"] = name_of(row->second->dtype);
      json["bytes"] = row->second->bytes;
    }
    const auto of = [&](const std::vector<int>& indices, const std::vector<int>& places) {
      PageJson all = PageJson::array();
      for (const int index : indices) all.push_back(places[static_cast<std::size_t>(index)]);
      return all;
    };
    if (item.kind == TreeItem::Kind::operation || item.kind == TreeItem::Kind::added) {
      const PolicyItems::Operator& op = items.operators[static_cast<std::size_t>(item.index)];
      std::vector<int> from;
      for (const int node : op.nodes) {
        for (const ValueId input : graph.nodes[static_cast<std::size_t>(node)].inputs) {
          const NodeId producer = input ? graph.value(input).producer : NodeId{};
          if (!producer) continue;
          const int other = items.operator_of_node[static_cast<std::size_t>(producer.index)];
          if (other != item.index && std::find(from.begin(), from.end(), other) == from.end())
            from.push_back(other);
        }
      }
      json["op"] = op.ops.empty() ? "" : op.ops.back();
      json["raw_name"] = op.raw_name;
      json["from"] = of(from, of_operator_);
      json["reads"] = of(op.parameters, of_parameter_);
    }
    if (item.kind == TreeItem::Kind::parameter || item.kind == TreeItem::Kind::buffer) {
      const PolicyItems::Parameter& p = items.parameters[static_cast<std::size_t>(item.index)];
      const State& state = graph.states[static_cast<std::size_t>(p.state)];
      json["trains"] = state.trainable;
      json["reason"] = state.reason;
      json["update"] = "optimizer." + state.name;  // the node that updates it
      json["read_by"] = of(p.readers, of_operator_);
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace tandem::api
