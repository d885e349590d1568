// Flags are 0 or 1 in the file: integer attributes whose default is 0 or 1 refuse all other
// numbers, except those that count or name something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/graph/error.h"
#include "importer/operators/all.h"
#include "onnx/defs/schema.h"
#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

const std::set<std::string> numeric_attributes{"axis",
                                               "batch_axis",
                                               "batch_dims",
                                               "block_size",
                                               "dtype",
                                               "group",
                                               "k",
                                               "offset_group",
                                               "output_datatype",
                                               "output_dtype",
                                               "output_height",
                                               "output_width",
                                               "precision",
                                               "qk_matmul_output_mode",
                                               "rotary_embedding_dim",
                                               "sample_size",
                                               "sampling_ratio",
                                               "stash_type",
                                               "start",
                                               "time_axis"};

// The attributes of an operator's version that are flags: integers whose default is 0 or 1.
std::set<std::string> flags_of(const std::string& op, int version) {
  std::set<std::string> flags;
  for (const auto& [name, attribute] :
       onnx::OpSchemaRegistry::Schema(op, version, "")->attributes()) {
    const bool has_default = !attribute.default_value.name().empty();
    if (attribute.type != onnx::AttributeProto::INT || !has_default ||
        numeric_attributes.count(name) > 0)
      continue;
    const std::int64_t value = attribute.default_value.i();
    if (value == 0 || value == 1) flags.insert(name);
  }
  return flags;
}

void set_flag(onnx::NodeProto& node, const std::string& flag, std::int64_t value) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.name() == flag) return attribute.set_i(value);
  }
  set(node, flag, value);
}

// The import error for the row with another value of the flag; "" if import accepts it.
std::string error_with(VersionRow row, int version, const std::string& flag, std::int64_t value) {
  if (row.nodes) {
    row.nodes = [make = row.nodes, op = row.op, flag, value](ModelMaker& m) {
      make(m);
      for (onnx::NodeProto& node : *m.graph().mutable_node()) {
        if (node.op_type() == op) set_flag(node, flag, value);
      }
    };
  } else {
    std::erase_if(row.attributes, [&](const auto& attribute) { return attribute.first == flag; });
    row.attributes.emplace_back(flag, value);
  }
  try {
    import_row(row, version, inputs_of(row));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Whether some form of the operator reads the flag: a row is refused for it.
bool is_refused(const std::string& op, int version, const std::string& flag, std::int64_t value) {
  return std::any_of(version_rows().begin(), version_rows().end(), [&](const VersionRow& row) {
    if (row.op != op || !row.refused.empty() || !covers(row, version)) return false;
    const std::string text = error_with(row, version, flag, value);
    return text.find(flag) != std::string::npos && text.find("0 or 1") != std::string::npos;
  });
}

TEST(Flags, OtherThan0And1AreRefused) {
  std::size_t flags = 0;
  for (const importer::Lowering& lowering : importer::all_lowerings()) {
    for (const int version : versions_of(lowering.op)) {
      for (const std::string& flag : flags_of(lowering.op, version)) {
        ++flags;
        for (const std::int64_t value : {1000000, -1, 2}) {
          EXPECT_TRUE(is_refused(lowering.op, version, flag, value))
              << lowering.op << " " << version << ": " << flag << " = " << value;
        }
      }
    }
  }
  EXPECT_GT(flags, 0u);
}

}  // namespace
}  // namespace tandem::testing
