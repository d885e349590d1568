// Counts the parts of a serialized model without parsing it.
#include "importer/file/check_file.h"

namespace tandem::importer {
namespace {

enum class Part { model, graph, node, attribute, tensor, function, training, message, text };

Part child(Part parent, std::uint64_t field) {
  switch (parent) {
    case Part::model:
      return field == 7                  ? Part::graph
             : field == 20               ? Part::training
             : field == 25               ? Part::function
             : field == 8 || field >= 14 ? Part::message
                                         : Part::text;
    case Part::graph:
      return field == 1    ? Part::node
             : field == 5  ? Part::tensor
             : field >= 11 ? Part::message
                           : Part::text;
    case Part::node:
      return field == 5 ? Part::attribute : field >= 9 ? Part::message : Part::text;
    case Part::attribute:
      return field == 5 || field == 10   ? Part::tensor
             : field == 6 || field == 11 ? Part::graph
             : field >= 14               ? Part::message
                                         : Part::text;
    case Part::function:
      return field == 7    ? Part::node
             : field == 11 ? Part::attribute
             : field >= 9  ? Part::message
                           : Part::text;
    case Part::training:
      return field <= 2 ? Part::graph : Part::message;
    case Part::tensor:
      return field == 13 ? Part::message : Part::text;
    case Part::message:
    case Part::text:
      break;
  }
  return Part::text;
}

class Scan {
 public:
  explicit Scan(std::int64_t most) : most_(most) {}

  // False where the bytes are not well formed; the parser says so better.
  bool walk(std::string_view bytes, Part part, int depth) {
    if (depth > 100) return false;
    std::size_t at = 0;
    while (at < bytes.size() && count <= most_) {
      std::uint64_t key = 0, length = 0;
      if (!varint(bytes, at, key)) return false;
      switch (key & 7) {
        case 0:
          if (!varint(bytes, at, length)) return false;
          continue;
        case 1:
          length = 8;
          break;
        case 5:
          length = 4;
          break;
        case 2:
          if (!varint(bytes, at, length)) return false;
          break;
        default:
          return false;
      }
      if (length > bytes.size() - at) return false;
      if ((key & 7) == 2) {
        ++count;
        const Part inner = child(part, key >> 3);
        if (inner == Part::message) {
          count += static_cast<std::int64_t>(length / 8);
        } else if (inner != Part::text) {
          if (!walk(bytes.substr(at, length), inner, depth + 1)) return false;
        }
      }
      at += length;
    }
    return true;
  }

  std::int64_t count = 0;

 private:
  static bool varint(std::string_view bytes, std::size_t& at, std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80u) == 0) return true;
    }
    return false;
  }

  std::int64_t most_;
};

}  // namespace

std::int64_t count_messages(std::string_view bytes, std::int64_t most) {
  Scan scan(most);
  scan.walk(bytes, Part::model, 0);
  return scan.count;
}

}  // namespace tandem::importer
