// Every optimizer of looked-up rows over 50 steps against a plain double-precision script of its
// published formula (tests/scripts/row_optimizers.py): duplicate ids, empty batches, all ids equal,
// all different.
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/graph/split_float.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/optimizer.h"
#include "tests/harness/folders.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
const std::string data = source_folder() + "/tests/data/row_optimizers/";

const Json& description() {
  static const Json json = Json::parse(read_file(data + "cases.json"));
  return json;
}

/// An array of the tables or of the cases of any kind.
const HostTensor& array(const std::string& name) {
  static const std::map<std::string, HostTensor> arrays = [] {
    std::map<std::string, HostTensor> all;
    std::set<std::string> files{"tables"};
    for (const Json& json : description()["cases"]) files.insert(json["kind"]);
    for (const std::string& file : files) {
      for (const NamedTensor& t : read_npz(data + file + ".npz")) all.emplace(t.name, t.tensor);
    }
    return all;
  }();
  return arrays.at(name);
}
bool has_array(const std::string& name) {
  try {
    array(name);
    return true;
  } catch (const std::out_of_range&) {
    return false;
  }
}

struct OptimizerCase {
  std::size_t index = 0;
  const Json& json() const { return description()["cases"][index]; }
  std::string name() const { return json()["name"]; }
};
void PrintTo(const OptimizerCase& c, std::ostream* stream) { *stream << c.name(); }

/// The update for a case's kind and options; `columns` converts the script's `l1`.
UpdateChoice choice_of(const Json& json, std::int64_t columns) {
  OptimizerOptions options(json["kind"].get<std::string>());
  for (const auto& [key, value] : json["options"].items()) {
    if (key == "lr") continue;
    OptimizerValue& to = options.values.at(key);
    if (value.is_boolean())
      to = value.get<bool>();
    else if (value.is_string())
      to = value.get<std::string>();
    else
      to = value.get<double>();
  }
  if (options.name() == "group_ftrl") {  // the script's threshold is on the norm of the whole row
    options.values.at("l21") = options.number("l1") / std::sqrt(static_cast<double>(columns));
    options.values.at("l1") = 0.0;
  }
  return options.kind->choose(options.values);
}

/// Whether rows without ids keep every bit.
bool stays(const UpdateChoice& choice) {
  return choice.lazy || find_update_kind(choice.op)->keeps_still(choice.settings);
}

Attributes attributes_of_choice(const UpdateChoice& choice) {
  Attributes attributes;
  for (const AttributeSpec& spec : all_update_attributes(true))
    attributes.set(spec.name, spec.value);
  for (const auto& [name, value] : choice.settings.entries()) attributes.set(name, value);
  attributes.set("op", choice.op);
  attributes.set("lazy", std::int64_t{stays(choice)});
  return attributes;
}

/// The groups that UniqueIndices makes of the ids.
std::vector<HostTensor> groups_of(std::span<const std::int64_t> ids, std::int64_t rows) {
  std::map<std::int64_t, std::vector<std::int32_t>> positions;
  for (std::size_t i = 0; i < ids.size(); ++i)
    positions[ids[i]].push_back(static_cast<std::int32_t>(i));
  const auto count = static_cast<std::int64_t>(ids.size()), capacity = std::min(count, rows);
  std::vector<std::int64_t> unique;
  std::vector<std::int32_t> order, offsets;
  for (const auto& [row, places] : positions) {
    unique.push_back(row);
    offsets.push_back(static_cast<std::int32_t>(order.size()));
    order.insert(order.end(), places.begin(), places.end());
  }
  const auto found = static_cast<std::int32_t>(unique.size());
  unique.resize(static_cast<std::size_t>(capacity), -1);
  offsets.resize(static_cast<std::size_t>(capacity) + 1, static_cast<std::int32_t>(count));
  return {HostTensor::from<std::int64_t>({capacity}, unique),
          HostTensor::from<std::int32_t>({count}, order),
          HostTensor::from<std::int32_t>({capacity + 1}, offsets),
          HostTensor::from<std::int32_t>({}, {found})};
}

/// Master and states after all steps, on the kernel with this name.
class OptimizedTable {
 public:
  OptimizedTable(const Json& json, const std::string& table, DType dtype, bool split = false)
      : json_(json), table_(table), dtype_(dtype) {
    const Json& shape = description()["tables"][table];
    rows_ = shape["rows"];
    columns_ = shape["columns"];
    const UpdateChoice choice = choice_of(json, columns_);
    attributes_ = attributes_of_choice(choice);
    const UpdateKind& kind = *find_update_kind(attributes_.text("op"));
    tensors.push_back(array(table + ".initial").converted(dtype));
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      if (!kind.keeps_state(k, attributes_, {rows_, columns_})) {
        tensors.emplace_back();
        continue;
      }
      HostTensor state(TensorType{DType::float64, kind.state_shape(k, {rows_, columns_})});
      for (double& x : state.as<double>()) x = choice.starts[k];
      tensors.push_back(state.converted(dtype));
    }
    if (!split) return;
    attributes_.set("split", std::int64_t{1});
    const HostTensor whole = tensors[0];
    tensors[0] = HostTensor(TensorType{DType::bfloat16, whole.shape()});
    tensors.emplace_back(TensorType{DType::int16, whole.shape()});
    split_floats(whole.as<float>().data(), tops(), tails(), whole.type().elements());
  }

  /// The float32 values of a split table.
  HostTensor joined() {
    HostTensor whole(TensorType{DType::float32, tensors[0].shape()});
    join_floats(tops(), tails(), whole.as<float>().data(), whole.type().elements());
    return whole;
  }

  /// Returns false if the list has no such kernel for the table.
  bool run(const std::string& kernel_name) {
    const auto offsets = array(table_ + ".offsets").integers(),
               ids = array(table_ + ".ids").integers();
    const HostTensor gradients = array(table_ + ".gradients").converted(dtype_);
    const std::size_t row_bytes = gradients.bytes() / ids.size();
    for (std::int64_t step = 1; step < static_cast<std::int64_t>(offsets.size()); ++step) {
      const std::int64_t first = offsets[step - 1], count = offsets[step] - first;
      std::vector<HostTensor> inputs = tensors;
      for (HostTensor& t : groups_of({ids.data() + first, static_cast<std::size_t>(count)}, rows_))
        inputs.push_back(t);
      const HostTensor one = HostTensor::from<double>({}, {1.0}).converted(dtype_);
      inputs.push_back(
          HostTensor::from<double>({}, {json_["options"]["lr"].get<double>()}).converted(dtype_));
      inputs.push_back(HostTensor::from<std::int64_t>({}, {step}));
      inputs.push_back(one);
      inputs.push_back(HostTensor::from<bool>({}, {false}));
      HostTensor dy(TensorType{dtype_, {count, columns_}});
      if (count > 0) {
        std::memcpy(dy.data(),
                    static_cast<const char*>(gradients.data()) +
                        static_cast<std::size_t>(first) * row_bytes,
                    dy.bytes());
      }
      inputs.push_back(dy);
      const Graph graph = single_node("RowsUpdate", inputs, attributes_);
      const Kernel* kernel = nullptr;
      for (const Kernel& known : cpu_list()) {
        if (known.name == kernel_name) kernel = &known;
      }
      if (kernel->refuse(plain_request(graph, graph.nodes[0]))) return false;
      const std::vector<HostTensor> next = run_node(*kernel, graph, graph.nodes[0], inputs);
      for (std::size_t k = 0; k < tensors.size(); ++k) {
        if (tensors[k].type().elements() > 0 && tensors[k].data() != nullptr) tensors[k] = next[k];
      }
    }
    return true;
  }

  std::vector<HostTensor> tensors;

 private:
  std::uint16_t* tops() { return static_cast<std::uint16_t*>(tensors[0].data()); }
  std::int16_t* tails() { return tensors.back().as<std::int16_t>().data(); }

  const Json& json_;
  std::string table_;
  DType dtype_;
  std::int64_t rows_ = 0, columns_ = 0;
  Attributes attributes_;
};

class RowOptimizers : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(RowOptimizers, AgreeWithTheScript) {
  const Json& json = GetParam().json();
  for (const auto& [table, shape] : description()["tables"].items()) {
    for (const std::string kernel : {"cpu.rows_update", "reference.rows_update"}) {
      for (const DType dtype : {DType::float32, DType::float64}) {
        SCOPED_TRACE(table + " " + kernel + " " + std::string(name_of(dtype)));
        OptimizedTable run(json, table, dtype);
        if (!run.run(kernel)) {
          EXPECT_TRUE(kernel == "cpu.rows_update" && dtype == DType::float64);
          continue;
        }
        const double tolerance = dtype == DType::float32 ? 1e-6 : 1e-12;
        const std::string prefix = GetParam().name() + "." + table + ".";
        EXPECT_EQ(compare(run.tensors[0], array(prefix + "w"), tolerance), "") << "w";
        const auto& states = find_update_kind(choice_of(json, 1).op)->states;
        for (const Json& state : json["states"]) {
          const auto slot = std::find_if(states.begin(), states.end(),
                                         [&](const UpdateState& s) { return s.name == state; });
          ASSERT_NE(slot, states.end()) << state;
          const HostTensor& got = run.tensors[1 + static_cast<std::size_t>(slot - states.begin())];
          const std::string name = prefix + state.get<std::string>();
          if (!has_array(name)) continue;
          EXPECT_EQ(compare(got, array(name).reshaped(got.shape()), tolerance), "") << name;
        }
        if (!stays(choice_of(json, shape["columns"]))) continue;  // every row moves
        const HostTensor before = array(table + ".initial").converted(dtype);
        const std::int64_t columns = shape["columns"];
        for (const std::int64_t row : shape["untouched"]) {
          for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t i = row * columns + c;
            EXPECT_EQ(run.tensors[0].number(i), before.number(i)) << "row " << row;
          }
        }
      }
    }
  }
}

bool same_contents(const HostTensor& a, const HostTensor& b) {
  return a.bytes() == b.bytes() && (a.bytes() == 0 || !std::memcmp(a.data(), b.data(), a.bytes()));
}

// A bfloat16 and the rest of a float32 are updated like that float32, bit by bit; also with adam,
// which moves every row.
TEST_P(RowOptimizers, SplitMastersTakeTheSameSteps) {
  const Json& json = GetParam().json();
  for (const auto& [table, shape] : description()["tables"].items()) {
    for (const std::string list : {"cpu.", "reference."}) {
      SCOPED_TRACE(table + " " + list);
      const bool cpu = list == "cpu.";
      OptimizedTable whole(json, table, DType::float32), split(json, table, DType::float32, true);
      ASSERT_TRUE(whole.run(list + "rows_update"));
      ASSERT_TRUE(split.run(list + (cpu ? "rows_update" : "split_rows_update")));
      EXPECT_TRUE(same_contents(split.joined(), whole.tensors[0]));
      for (std::size_t k = 1; k < whole.tensors.size(); ++k) {
        if (whole.tensors[k].data() == nullptr) continue;
        EXPECT_TRUE(same_contents(split.tensors[k], whole.tensors[k])) << "state " << k;
      }
      EXPECT_FALSE(
          same_contents(whole.tensors[0], array(table + ".initial").converted(DType::float32)));
    }
  }
}

TEST(RowOptimizersTest, EveryUpdateHasACase) {
  std::set<std::string> ops;
  for (const Json& json : description()["cases"]) ops.insert(choice_of(json, 1).op);
  for (const UpdateKind& kind : update_kinds()) {
    EXPECT_EQ(ops.contains(kind.op), kind.updates_rows()) << kind.op;
  }
}

std::vector<OptimizerCase> row_optimizer_cases() {
  std::vector<OptimizerCase> all;
  for (std::size_t i = 0; i < description()["cases"].size(); ++i) all.push_back({i});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, RowOptimizers, ::testing::ValuesIn(row_optimizer_cases()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace tandem::testing
