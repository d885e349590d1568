// Writes an ONNX file byte by byte: enough of the format for small models in tests that have no
// ONNX library.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::testing {

/// A message of the wire format: keys, lengths and varints.
class WireMessage {
 public:
  WireMessage& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  WireMessage& bytes(int field, const std::string& content) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(content.size());
    text_ += content;
    return *this;
  }
  WireMessage& message(int field, const WireMessage& part) { return bytes(field, part.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) text_ += static_cast<char>(value % 128 + 128);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

class SmallModel {
 public:
  /// float32, as everything here; 6: int32, 7: int64.
  SmallModel& input(const std::string& name, const std::vector<std::int64_t>& shape,
                    std::uint64_t element_type = 1) {
    graph_.message(11, port(name, shape, element_type));
    return *this;
  }
  /// An input with free dimensions of these names.
  SmallModel& free_input(const std::string& name, const std::vector<std::string>& dimensions,
                         std::uint64_t element_type = 1) {
    graph_.message(11, free_port(name, dimensions, element_type));
    return *this;
  }
  SmallModel& free_output(const std::string& name, const std::vector<std::string>& dimensions) {
    graph_.message(12, free_port(name, dimensions));
    return *this;
  }
  /// An initializer of one int64.
  SmallModel& integer(const std::string& name, std::int64_t value) {
    graph_.message(5, WireMessage().number(1, 1).number(2, 7).bytes(8, name).bytes(
                          9, std::string(reinterpret_cast<const char*>(&value), sizeof value)));
    return *this;
  }
  SmallModel& output(const std::string& name, const std::vector<std::int64_t>& shape) {
    graph_.message(12, port(name, shape));
    return *this;
  }
  /// Values spread over [-scale, scale], the same at each call.
  SmallModel& weight(const std::string& name, const std::vector<std::int64_t>& shape, float scale) {
    WireMessage tensor;
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) {
      tensor.number(1, static_cast<std::uint64_t>(extent));
      elements *= extent;
    }
    std::vector<float> values(static_cast<std::size_t>(elements));
    std::uint32_t random = 12345;
    for (float& value : values) {
      random = random * 1664525u + 1013904223u;
      value = scale * (static_cast<float>(random >> 8) / 8388608.0f - 1.0f);
    }
    tensor.number(2, 1).bytes(8, name).bytes(
        9, std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size()));
    graph_.message(5, tensor);
    return *this;
  }
  /// Its values are the first bytes of the file `location` next to the model.
  SmallModel& external_weight(const std::string& name, const std::vector<std::int64_t>& shape,
                              const std::string& location) {
    WireMessage tensor;
    for (const std::int64_t extent : shape) tensor.number(1, static_cast<std::uint64_t>(extent));
    tensor.number(2, 1).bytes(8, name);
    tensor.message(13, WireMessage().bytes(1, "location").bytes(2, location)).number(14, 1);
    graph_.message(5, tensor);
    return *this;
  }
  /// `integers`: attributes, by name.
  SmallModel& node(const std::string& op, const std::string& name,
                   const std::vector<std::string>& inputs, const std::string& output,
                   const std::vector<std::pair<std::string, std::uint64_t>>& integers = {}) {
    WireMessage node;
    for (const std::string& input : inputs) node.bytes(1, input);
    node.bytes(2, output).bytes(3, name).bytes(4, op);
    for (const auto& [key, value] : integers)
      node.message(5, WireMessage().bytes(1, key).number(3, value).number(20, 2));
    graph_.message(1, node);
    return *this;
  }
  std::string bytes() const {
    WireMessage graph = graph_;
    graph.bytes(2, "graph");
    WireMessage opset;
    opset.number(2, 20);
    return WireMessage().number(1, 10).message(7, graph).message(8, opset).text();
  }

 private:
  static WireMessage port(const std::string& name, const std::vector<std::int64_t>& shape,
                          std::uint64_t element_type = 1) {
    WireMessage dims;
    for (const std::int64_t extent : shape) {
      dims.message(1, WireMessage().number(1, static_cast<std::uint64_t>(extent)));
    }
    const WireMessage tensor = WireMessage().number(1, element_type).message(2, dims);
    return WireMessage().bytes(1, name).message(2, WireMessage().message(1, tensor));
  }
  static WireMessage free_port(const std::string& name, const std::vector<std::string>& dimensions,
                               std::uint64_t element_type = 1) {
    WireMessage dims;
    for (const std::string& dimension : dimensions)
      dims.message(1, WireMessage().bytes(2, dimension));
    const WireMessage tensor = WireMessage().number(1, element_type).message(2, dims);
    return WireMessage().bytes(1, name).message(2, WireMessage().message(1, tensor));
  }
  WireMessage graph_;
};

}  // namespace tandem::testing
