// Einsum: operands are contracted from left to right, each pair as one MatMul [batch, rows,
// columns], or as one Mul where no label is summed.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

/// A label is a letter; the axes of an ellipsis, counted from its last one, are 256, 257, ...
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_of_ellipsis = 256;

bool has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Tensor {
  Term term;
  Labels labels;  // one for each axis

  std::int64_t extent(Label label) const {
    const auto at = std::find(labels.begin(), labels.end(), label) - labels.begin();
    return at == static_cast<std::ptrdiff_t>(labels.size())
               ? 1
               : term.type.shape[static_cast<std::size_t>(at)];
  }
};

/// The labels of one part of the equation, with as many axes in its ellipsis as given.
Labels read_labels(NodeContext& node, const std::string& part, std::size_t ellipsis) {
  Labels labels;
  bool seen = false;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part.compare(i, 3, "...") == 0 && !seen) {
      for (std::size_t k = ellipsis; k-- > 0;) {
        labels.push_back(first_of_ellipsis + static_cast<Label>(k));
      }
      seen = true;
      i += 2;
    } else if ((part[i] >= 'a' && part[i] <= 'z') || (part[i] >= 'A' && part[i] <= 'Z')) {
      labels.push_back(part[i]);
    } else {
      node.fail("equation", "letters and one ellipsis in each part", part);
    }
  }
  return labels;
}

bool has_ellipsis(const std::string& part) { return part.find("...") != std::string::npos; }

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

Equation read_equation(NodeContext& node) {
  std::string text = node.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> parts(1);
  for (char c : left) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  if (parts.size() != node.input_count()) {
    node.fail("equation", fmt::format("{} operands", node.input_count()), text);
  }
  Equation equation;
  std::size_t widest = 0;  // ellipsis
  std::map<Label, int> counts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t letters = read_labels(node, parts[i], 0).size();
    const auto rank = static_cast<std::size_t>(node.rank(i));
    if (letters > rank || (letters < rank && !has_ellipsis(parts[i]))) {
      node.fail(fmt::format("rank of operand {}", i), parts[i], std::to_string(rank));
    }
    equation.operands.push_back(read_labels(node, parts[i], rank - letters));
    widest = std::max(widest, rank - letters);
    for (Label label : equation.operands.back()) ++counts[label];
  }
  if (arrow != std::string::npos) {
    equation.result = read_labels(node, text.substr(arrow + 2), widest);
  } else {  // the ellipsis, then what occurs once, in the order of letters
    equation.result = read_labels(node, "...", widest);
    for (const auto& [label, count] : counts) {
      if (count == 1 && label < first_of_ellipsis) equation.result.push_back(label);
    }
  }
  for (Label label : equation.result) {
    if (std::count(equation.result.begin(), equation.result.end(), label) > 1) {
      node.fail("equation", "results with each label once", text);
    }
    if (counts.count(label) == 0)
      node.fail("equation", "results of labels that operands have", text);
  }
  return equation;
}

// One axis for a label that x has twice: the elements where both places agree lie n + 1 apart.
Tensor diagonal(NodeContext& node, Tensor x) {
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    const auto second = std::find(x.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                  x.labels.end(), x.labels[i]);
    if (second == x.labels.end()) continue;
    const auto j = static_cast<std::size_t>(second - x.labels.begin());
    const std::int64_t n = x.term.type.shape[i];
    if (n != x.term.type.shape[j]) {
      node.fail("extents of one label", std::to_string(n), std::to_string(x.term.type.shape[j]));
    }
    Ints perm;
    Labels labels;
    Shape shape;
    for (std::size_t k = 0; k < x.labels.size(); ++k) {
      if (k == i || k == j) continue;
      perm.push_back(static_cast<std::int64_t>(k));
      labels.push_back(x.labels[k]);
      shape.push_back(x.term.type.shape[k]);
    }
    perm.insert(perm.end(), {static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)});
    labels.push_back(x.labels[i]);
    Ints steps(shape.size() + 1, 1);
    steps.back() = n + 1;
    Shape square = shape;
    square.push_back(n * n);
    shape.push_back(n);
    const Term flat = node.reshape(node.transpose(x.term, perm), square);
    const Term taken =
        node.make("Slice", {flat},
                  {{"starts", Ints(shape.size(), 0)}, {"sizes", Ints(shape)}, {"steps", steps}});
    return diagonal(node, {taken, labels});
  }
  return x;
}

Tensor summed(NodeContext& node, const Tensor& x, const std::set<Label>& kept) {
  Ints axes;
  Labels labels;
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    if (kept.count(x.labels[i]) > 0) {
      labels.push_back(x.labels[i]);
    } else {
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (axes.empty()) return x;
  return {node.make("ReduceSum", {x.term}, {{"axes", axes}, {"keepdims", std::int64_t{0}}}),
          labels};
}

/// x with its axes in that order; all of x's labels are in it, new ones get an extent of 1.
Tensor ordered(NodeContext& node, const Tensor& x, const Labels& order) {
  Ints perm;
  Shape shape;
  for (Label label : order) {
    const auto at = std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin();
    shape.push_back(x.extent(label));
    if (at < static_cast<std::ptrdiff_t>(x.labels.size())) perm.push_back(at);
  }
  return {node.reshape(node.transpose(x.term, perm), shape), order};
}

/// x with the extents that the labels have in both.
Tensor spread(NodeContext& node, const Tensor& x, const std::map<Label, std::int64_t>& extents) {
  Shape shape;
  for (Label label : x.labels) shape.push_back(extents.at(label));
  return {node.expand(x.term, shape), x.labels};
}

Labels in_order(const Labels& a, const Labels& b, const Labels& c) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// Sums over the labels that both have and that are not needed afterwards.
Tensor contracted(NodeContext& node, Tensor a, Tensor b, const std::set<Label>& needed) {
  std::set<Label> of_a = needed, of_b = needed;
  of_a.insert(b.labels.begin(), b.labels.end());
  of_b.insert(a.labels.begin(), a.labels.end());
  a = summed(node, a, of_a);
  b = summed(node, b, of_b);
  Labels batch, sums, rows, columns;
  std::map<Label, std::int64_t> extents;
  for (Label label : a.labels) {
    const bool both = has(b.labels, label);
    (!both ? rows : needed.count(label) > 0 ? batch : sums).push_back(label);
    extents[label] = a.extent(label);
  }
  for (Label label : b.labels) {
    if (!has(a.labels, label)) columns.push_back(label);
    std::int64_t& extent = extents[label];
    const std::int64_t other = b.extent(label);
    if (has(a.labels, label) && extent != other && extent != 1 && other != 1) {
      node.fail("extents of one label", std::to_string(extent), std::to_string(other));
    }
    if (!has(a.labels, label) || extent == 1) extent = other;
  }
  const Labels result = in_order(batch, rows, columns);
  if (sums.empty()) {
    return {node.make("Mul", {ordered(node, a, result).term, ordered(node, b, result).term}),
            result};
  }
  const auto count = [&](const Labels& labels) {
    std::int64_t product = 1;
    for (Label label : labels) product *= extents.at(label);
    return product;
  };
  a = spread(node, ordered(node, a, in_order(batch, rows, sums)), extents);
  b = spread(node, ordered(node, b, in_order(batch, sums, columns)), extents);
  const Term y =
      node.make("MatMul", {node.reshape(a.term, {count(batch), count(rows), count(sums)}),
                           node.reshape(b.term, {count(batch), count(sums), count(columns)})});
  Shape shape;
  for (Label label : result) shape.push_back(extents.at(label));
  return {node.reshape(y, shape), result};
}

}  // namespace

void einsum(NodeContext& node) {
  const Equation equation = read_equation(node);
  // What each operand's successors and the result need.
  std::vector<std::set<Label>> needed(equation.operands.size());
  std::set<Label> later(equation.result.begin(), equation.result.end());
  for (std::size_t i = equation.operands.size(); i-- > 0;) {
    needed[i] = later;
    later.insert(equation.operands[i].begin(), equation.operands[i].end());
  }
  Tensor result = diagonal(node, {node.in(0), equation.operands[0]});
  for (std::size_t i = 1; i < equation.operands.size(); ++i) {
    result =
        contracted(node, result, diagonal(node, {node.in(i), equation.operands[i]}), needed[i]);
  }
  result = summed(node, result, {equation.result.begin(), equation.result.end()});
  result = ordered(node, result, equation.result);
  const bool made = result.term.id != node.in(0).id || result.term.is_constant();
  node.out(0, made ? result.term : node.make("Identity", {result.term}));
}

}  // namespace tandem::importer::operators
