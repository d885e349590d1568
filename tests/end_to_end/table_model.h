// The smallest ONNX file with a table: y = Gather(table.weight, ids), a placeholder of one row.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace tandem::testing {

/// Writes protocol buffers: a message's fields, one after another.
class ProtoWriter {
 public:
  ProtoWriter& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  ProtoWriter& bytes(int field, const std::string& value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  ProtoWriter& message(int field, const ProtoWriter& value) { return bytes(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) text_ += static_cast<char>(value | 128);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

/// Writes a model of ids int64 ["batch"] → y float32 ["batch", columns], rows of table.weight
/// float32 [1, columns].
inline void write_table_model(const std::string& path, std::int64_t columns) {
  constexpr std::uint64_t float32 = 1, int64 = 7;
  const auto extent = static_cast<std::uint64_t>(columns);
  const auto batch = ProtoWriter().bytes(2, "batch");
  const auto port = [](const std::string& name, std::uint64_t type, const ProtoWriter& shape) {
    const auto tensor = ProtoWriter().number(1, type).message(2, shape);
    return ProtoWriter().bytes(1, name).message(2, ProtoWriter().message(1, tensor));
  };
  const auto node = ProtoWriter()
                        .bytes(1, "table.weight")
                        .bytes(1, "ids")
                        .bytes(2, "y")
                        .bytes(3, "/table/Gather")
                        .bytes(4, "Gather");
  const auto weight = ProtoWriter()
                          .number(1, 1)
                          .number(1, extent)
                          .number(2, float32)
                          .bytes(8, "table.weight")
                          .bytes(9, std::string(4 * extent, '\0'));
  const auto row = ProtoWriter().message(1, batch).message(1, ProtoWriter().number(1, extent));
  const auto graph = ProtoWriter()
                         .message(1, node)
                         .bytes(2, "table")
                         .message(5, weight)
                         .message(11, port("ids", int64, ProtoWriter().message(1, batch)))
                         .message(12, port("y", float32, row));
  const auto opset = ProtoWriter().bytes(1, "").number(2, 17);
  std::ofstream(path, std::ios::binary)
      << ProtoWriter().number(1, 8).message(7, graph).message(8, opset).text();
}

}  // namespace tandem::testing
