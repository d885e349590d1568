// Small random networks as ONNX files, whose weights and activations pass through operators that
// only move numbers: Transpose, Reshape, Concat, Split, Slice, Unsqueeze, Squeeze.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/table_model.h"

namespace tandem::testing {

class ViewGraph {
 public:
  static constexpr std::int64_t inputs = 6, classes = 4;

  explicit ViewGraph(std::uint64_t seed) : random_(seed) {
    std::string h = "x";
    std::int64_t width = inputs;
    const std::uint64_t layers = 1 + random_() % 3;
    for (std::uint64_t layer = 0; layer < layers; ++layer) {
      const bool last = layer + 1 == layers;
      const std::int64_t wide = last ? classes : 2 * (1 + one_of(4));
      h = node("MatMul", {h, weight({width, wide}, one_of(4))}, last ? "product" : "");
      if (one_of(2) == 0) h = node("Add", {h, weight({wide}, one_of(2))});
      if (!last && one_of(2) == 0) h = node("Relu", {h});
      if (!last && one_of(2) == 0) h = moved(h, wide);
      width = wide;
    }
    node("Identity", {h}, "logits");
  }

  void write(const std::string& path) const {
    const auto batch = ProtoWriter().bytes(2, "batch");
    const auto port = [&](const std::string& name, std::int64_t columns) {
      const auto shape = ProtoWriter().message(1, batch).message(
          1, ProtoWriter().number(1, static_cast<std::uint64_t>(columns)));
      const auto tensor = ProtoWriter().number(1, 1).message(2, shape);
      return ProtoWriter().bytes(1, name).message(2, ProtoWriter().message(1, tensor));
    };
    ProtoWriter graph = nodes_;
    graph.bytes(2, "views");
    for (const ProtoWriter& tensor : tensors_) graph.message(5, tensor);
    graph.message(11, port("x", inputs)).message(12, port("logits", classes));
    const auto opset = ProtoWriter().bytes(1, "").number(2, 17);
    std::ofstream(path, std::ios::binary)
        << ProtoWriter().number(1, 8).message(7, graph).message(8, opset).text();
  }

 private:
  using Shape = std::vector<std::int64_t>;

  std::int64_t one_of(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  std::string next_name(const std::string& of) { return of + std::to_string(++names_); }

  static ProtoWriter list(const std::string& name, const Shape& values) {
    ProtoWriter attribute;
    attribute.bytes(1, name);
    for (const std::int64_t value : values) attribute.number(8, static_cast<std::uint64_t>(value));
    return attribute.number(20, 7);
  }
  static ProtoWriter number(const std::string& name, std::int64_t value) {
    return ProtoWriter().bytes(1, name).number(3, static_cast<std::uint64_t>(value)).number(20, 2);
  }

  /// Adds a node; returns its outputs.
  std::vector<std::string> nodes(const std::string& op, const std::vector<std::string>& from,
                                 const std::vector<ProtoWriter>& attributes, std::size_t outputs,
                                 const std::string& name = "") {
    ProtoWriter node;
    std::vector<std::string> made;
    for (const std::string& input : from) node.bytes(1, input);
    for (std::size_t i = 0; i < outputs; ++i) {
      made.push_back(name.empty() ? next_name("v") : name);
      node.bytes(2, made.back());
    }
    node.bytes(3, next_name(op)).bytes(4, op);
    for (const ProtoWriter& attribute : attributes) node.message(5, attribute);
    nodes_.message(1, node);
    return made;
  }
  std::string node(const std::string& op, const std::vector<std::string>& from,
                   const std::string& name = "", const std::vector<ProtoWriter>& attributes = {}) {
    return nodes(op, from, attributes, 1, name)[0];
  }
  std::string tensor(const std::string& name, const Shape& shape, std::uint64_t type,
                     const std::string& raw) {
    ProtoWriter made;
    for (const std::int64_t extent : shape) made.number(1, static_cast<std::uint64_t>(extent));
    tensors_.push_back(made.number(2, type).bytes(8, name).bytes(9, raw));
    return name;
  }
  std::string integers(const Shape& values) {
    return tensor(next_name("c"), {static_cast<std::int64_t>(values.size())}, 7,
                  std::string(reinterpret_cast<const char*>(values.data()), 8 * values.size()));
  }
  std::string parameter(const Shape& shape) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    std::string raw;
    std::uniform_real_distribution<float> value(-0.7f, 0.7f);
    for (std::int64_t i = 0; i < elements; ++i) {
      const float number = value(random_);
      raw.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    return tensor(next_name("w"), shape, 1, raw);
  }

  /// A value of this shape, made from parameters by at most `depth` operators in a row.
  std::string weight(const Shape& shape, std::int64_t depth) {
    if (depth <= 0) return one_of(4) == 0 && !tied_.empty() ? tied(shape) : kept(shape);
    const auto axis = static_cast<std::size_t>(one_of(static_cast<std::int64_t>(shape.size())));
    switch (one_of(7)) {
      case 0: {
        if (shape.size() < 2) return weight(shape, depth - 1);
        Shape turned(shape.rbegin(), shape.rend()), order;
        for (std::size_t i = shape.size(); i > 0; --i)
          order.push_back(static_cast<std::int64_t>(i - 1));
        return node("Transpose", {weight(turned, depth - 1)}, "", {list("perm", order)});
      }
      case 1: {
        std::int64_t elements = 1;
        for (const std::int64_t extent : shape) elements *= extent;
        const Shape flat{elements},
            two{elements % 2 == 0 ? 2 : 1, elements % 2 == 0 ? elements / 2 : elements};
        const std::string from = weight(one_of(2) == 0 ? flat : two, depth - 1);
        return node("Reshape", {from, integers(shape)});
      }
      case 2: {
        if (shape[axis] < 2) return weight(shape, depth - 1);
        Shape first = shape, second = shape;
        first[axis] = 1 + one_of(shape[axis] - 1);
        second[axis] = shape[axis] - first[axis];
        return node("Concat", {weight(first, depth - 1), weight(second, depth - 1)}, "",
                    {number("axis", static_cast<std::int64_t>(axis))});
      }
      case 3: {  // one part, or the sum of both
        Shape whole = shape;
        whole[axis] *= 2;
        const std::vector<std::string> parts =
            nodes("Split", {weight(whole, depth - 1), integers({shape[axis], shape[axis]})},
                  {number("axis", static_cast<std::int64_t>(axis))}, 2);
        return one_of(2) == 0 ? node("Add", parts) : parts[static_cast<std::size_t>(one_of(2))];
      }
      case 4: {
        Shape whole = shape;
        whole[axis] += 2;
        const auto at = static_cast<std::int64_t>(axis);
        return node("Slice", {weight(whole, depth - 1), integers({1}), integers({1 + shape[axis]}),
                              integers({at})});
      }
      case 5: {
        Shape more = shape;
        more.insert(more.begin(), 1);
        return node("Squeeze", {weight(more, depth - 1), integers({0})});
      }
      default: {
        if (shape[0] != 1 || shape.size() < 2) return weight(shape, depth - 1);
        return node("Unsqueeze",
                    {weight(Shape(shape.begin() + 1, shape.end()), depth - 1), integers({0})});
      }
    }
  }
  std::string kept(const Shape& shape) {
    const std::string name = parameter(shape);
    tied_.emplace_back(shape, name);
    return name;
  }
  /// A parameter of this shape that another operator reads, too, if there is one.
  std::string tied(const Shape& shape) {
    for (const auto& [other, name] : tied_) {
      if (other == shape) return name;
    }
    return kept(shape);
  }

  /// Moves [batch, width] by operators and keeps its shape.
  std::string moved(const std::string& h, std::int64_t width) {
    switch (one_of(3)) {
      case 0: {
        const std::string apart = node("Reshape", {h, integers({0, 2, width / 2})});
        const std::string turned = node("Transpose", {apart}, "", {list("perm", {0, 2, 1})});
        return node("Reshape", {turned, integers({0, width})});
      }
      case 1: {
        const std::vector<std::string> parts =
            nodes("Split", {h, integers({width / 2, width / 2})}, {number("axis", 1)}, 2);
        return node("Concat", {parts[1], one_of(2) == 0 ? parts[0] : node("Relu", {parts[0]})}, "",
                    {number("axis", 1)});
      }
      default: {
        const std::string more = node("Unsqueeze", {h, integers({1})});
        return node("Squeeze", {more, integers({1})});
      }
    }
  }

  std::mt19937_64 random_;
  int names_ = 0;
  ProtoWriter nodes_;
  std::vector<ProtoWriter> tensors_;
  std::vector<std::pair<Shape, std::string>> tied_;
};

}  // namespace tandem::testing
