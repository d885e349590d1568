#include "importer/file/node_order.h"

#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "importer/file/initializers.h"

namespace tandem::importer {
namespace {

/// Which nodes read each node's results, and how many results of later nodes are read at all.
struct Readers {
  std::vector<std::vector<int>> of;
  std::vector<int> missing;  // makers that have not come yet, by node
  bool in_order = true;
};

Readers readers_in(const onnx::GraphProto& graph) {
  std::unordered_map<std::string, int> makers;
  for (int n = 0; n < graph.node_size(); ++n) {
    for (const std::string& output : graph.node(n).output()) {
      if (!output.empty()) makers.emplace(output, n);
    }
  }
  const auto count = static_cast<std::size_t>(graph.node_size());
  Readers readers{std::vector<std::vector<int>>(count), std::vector<int>(count), true};
  for (int n = 0; n < graph.node_size(); ++n) {
    for (const std::string& name : reads_of(graph.node(n))) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) continue;
      readers.in_order = readers.in_order && maker->second < n;
      readers.of[static_cast<std::size_t>(maker->second)].push_back(n);
      ++readers.missing[static_cast<std::size_t>(n)];
    }
  }
  return readers;
}

/// The numbers of the nodes in their new order; fewer than there are where some form a circle.
std::vector<int> order_of(Readers& readers) {
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;  // the earliest comes first
  for (std::size_t n = 0; n < readers.missing.size(); ++n) {
    if (readers.missing[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const int reader : readers.of[static_cast<std::size_t>(node)]) {
      if (--readers.missing[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
    }
  }
  return order;
}

}  // namespace

void order_nodes(onnx::GraphProto& graph, int nesting) {
  if (nesting <= 0) return;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) order_nodes(*attribute.mutable_g(), nesting - 1);
      for (onnx::GraphProto& inner : *attribute.mutable_graphs()) order_nodes(inner, nesting - 1);
    }
  }
  Readers readers = readers_in(graph);
  if (readers.in_order) return;
  const std::vector<int> order = order_of(readers);
  if (order.size() != readers.of.size()) return;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> sorted;
  for (const int node : order) *sorted.Add() = std::move(*graph.mutable_node(node));
  graph.mutable_node()->Swap(&sorted);
}

}  // namespace tandem::importer
