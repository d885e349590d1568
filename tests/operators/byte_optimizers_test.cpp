// Optimizers with states of 8 bits over 20 steps against a script of the published formula in
// double (tests/scripts/byte_optimizers.py), which also compares it with bitsandbytes: on every
// kernel of the host, in float32 and float64; and the map of their bytes.
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/dynamic_map.h"
#include "engine/optimizers/optimizer.h"
#include "tests/harness/folders.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<HostTensor>;

const Json& byte_script() {
  static const Json json =
      Json::parse(read_file(source_folder() + "/tests/data/byte_optimizers.json"));
  return json;
}

constexpr StateForm byte_forms[] = {StateForm::signed_bytes, StateForm::positive_bytes};

TEST(DynamicMap, IsThatOfBitsandbytes) {
  for (std::size_t i = 0; i < 2; ++i) {
    const std::array<float, 256> map = dynamic_map(byte_forms[i]);
    for (std::size_t code = 0; code < map.size(); ++code) {
      const double expected = byte_script()["maps"][i][code];
      EXPECT_NEAR(static_cast<double>(map[code]), expected, 2e-7 * std::abs(expected)) << code;
    }
  }
}

// Floats with the same upper bits have the code of the lowest one, or the next.
TEST(DynamicMap, CodesAreOfTheNearestNumber) {
  for (const StateForm form : byte_forms) {
    const DynamicCodes& codes = DynamicCodes::of(form);
    const std::array<float, 256> map = dynamic_map(form);
    const auto nearest = [&](float x) {
      std::size_t best = 0;
      for (std::size_t code = 1; code < map.size(); ++code) {
        if (std::abs(double{x} - double{map[code]}) < std::abs(double{x} - double{map[best]}))
          best = code;
      }
      return best;
    };
    const float least = form == StateForm::signed_bytes ? -1.0f : 0.0f;
    int tried = 0;
    for (std::uint32_t top = 0; top < 1 << 16; ++top) {
      for (const std::uint32_t low : {0u, 0x4000u, 0x8000u, 0xffffu}) {
        const float x = __builtin_bit_cast(float, top << 16 | low);
        if (!(x >= least && x <= 1.0f)) continue;
        // In the middle of two numbers, rounding decides between them.
        const double least_distance = std::abs(double{x} - double{map[nearest(x)]});
        ASSERT_LE(std::abs(double{x} - double{codes.number(codes.code(x))}),
                  least_distance + 1e-7 * std::abs(double{x}))
            << x;
        ++tried;
      }
    }
    EXPECT_GT(tried, 50000);
    for (std::size_t code = 0; code + 1 < map.size(); ++code) {
      const float border = (map[code] + map[code + 1]) / 2;
      EXPECT_LE(codes.code(std::nextafter(border, -2.0f)), code);
      EXPECT_GE(codes.code(std::nextafter(border, 2.0f)), code + 1);
    }
  }
}

TEST(DynamicMap, ScalesAreTheLargestOfABlock) {
  const DynamicCodes& codes = DynamicCodes::of(StateForm::signed_bytes);
  const float numbers[] = {0.5f, -3.0f, 0.0f, 3e-7f};
  std::uint8_t bytes[4];
  EXPECT_EQ(codes.encode(numbers, bytes, 4), 3.0f);
  float decoded[4];
  codes.decode(bytes, 3.0f, decoded, 4);
  EXPECT_NEAR(decoded[0], 0.5f, 0.0071f * 3);
  EXPECT_NEAR(decoded[1], -3.0f, 0.0071f * 3);
  EXPECT_EQ(decoded[2], 0.0f);
  const float zeros[] = {0.0f, -0.0f};
  EXPECT_EQ(codes.encode(zeros, bytes, 2), 0.0f);
  codes.decode(bytes, 1.0f, decoded, 2);
  EXPECT_EQ(decoded[0], 0.0f);
  const float broken[] = {1.0f, std::numeric_limits<float>::quiet_NaN(), 2.0f};
  EXPECT_TRUE(std::isnan(codes.encode(broken, bytes, 3)));
}

/// The script's noise.
double noise_at(std::int64_t i, int k) {
  std::uint32_t x =
      static_cast<std::uint32_t>(i + 1) * 2654435761u + static_cast<std::uint32_t>(k) * 2246822519u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return static_cast<double>(x >> 8) / 0x1p24 - 0.5;
}

struct ByteCase {
  std::size_t index = 0;
  const Json& json() const { return byte_script()["cases"][index]; }
};
void PrintTo(const ByteCase& c, std::ostream* stream) { *stream << c.json()["name"]; }

class ByteOptimizers : public ::testing::TestWithParam<ByteCase> {
 protected:
  ByteOptimizers() : options_(json_["kind"].get<std::string>()) {
    for (const auto& [key, value] : json_["options"].items()) {
      if (key == "lr") {
        options_.lr = value;
      } else if (key == "betas") {
        options_.values.at("beta1") = value[0].get<double>();
        options_.values.at("beta2") = value[1].get<double>();
      } else if (key != "zero_steps") {
        options_.values.at(key) = value.get<double>();
      }
    }
  }

  HostTensor gradient(int step, DType dtype) const {
    const Json zeros = json_["options"].value("zero_steps", Json::array());
    HostTensor tensor(TensorType{DType::float64, {elements_}});
    const bool zero = std::find(zeros.begin(), zeros.end(), step) != zeros.end();
    for (std::int64_t i = 0; i < elements_; ++i) {
      const std::int64_t block = i / state_block;
      tensor.as<double>()[static_cast<std::size_t>(i)] =
          zero || block == 3 ? 0
                             : noise_at(i, step) * std::ldexp(1.0, -static_cast<int>(block % 7));
    }
    return tensor.converted(dtype);
  }

  Tensors start(DType dtype) const {
    HostTensor master(TensorType{DType::float64, {elements_}});
    for (std::int64_t i = 0; i < elements_; ++i)
      master.as<double>()[static_cast<std::size_t>(i)] = noise_at(i, 0);
    Tensors all{master.converted(dtype)};
    const TensorType type{dtype, {elements_}};
    for (std::size_t k = 0; k < kind_.states.size(); ++k)
      all.emplace_back(kind_.state_type(k, type));
    return all;
  }

  Tensors inputs(const Tensors& tensors, const HostTensor& gradient, int step, DType dtype,
                 bool skip = false) const {
    Tensors all{tensors[0], gradient};
    all.insert(all.end(), tensors.begin() + 1, tensors.end());
    all.push_back(HostTensor::from<double>({}, {options_.lr}).converted(dtype));
    all.push_back(HostTensor::from<std::int64_t>({}, {step}));
    all.push_back(HostTensor::from<double>({}, {1.0}).converted(dtype));
    all.push_back(HostTensor::from<bool>({}, {skip}));
    return all;
  }

  /// Calls f(kernel, dtype).
  template <class F>
  void each(F f) const {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const Graph graph = single_node(
          choice_.op, inputs(start(dtype), gradient(1, dtype), 1, dtype), choice_.settings);
      each_kernel(graph, [&](const Kernel& kernel) { f(kernel, dtype); });
    }
  }

  /// What share of the bytes differ where the block's scale is not 0; the others say nothing.
  double share_of_others(const HostTensor& codes, const HostTensor& scales,
                         const std::string& expected) const {
    const std::int64_t stride = byte_script()["code_stride"];
    std::int64_t others = 0, compared = 0;
    const auto* const bytes = static_cast<const std::uint8_t*>(codes.data());
    for (std::int64_t i = 0; i < elements_; i += stride, ++compared) {
      const auto wanted =
          std::stoul(expected.substr(2 * static_cast<std::size_t>(compared), 2), nullptr, 16);
      others += scales.number(i / state_block) > 0 && bytes[i] != wanted;
    }
    return static_cast<double>(others) / static_cast<double>(compared);
  }

  const Json& json_ = GetParam().json();
  OptimizerOptions options_;
  const std::int64_t elements_ = json_["elements"];
  UpdateChoice choice_;
  const UpdateKind& kind_ = *find_update_kind("Adam8bitUpdate");

  void SetUp() override {
    choice_ = choose_update(options_, elements_);
    ASSERT_EQ(choice_.op, kind_.op);
  }
};

// In float32 some numbers lie on the other side of the middle between two of the map.
TEST_P(ByteOptimizers, TakeTheSameSteps) {
  each([&](const Kernel& kernel, DType dtype) {
    SCOPED_TRACE(kernel.name + " " + std::string(name_of(dtype)));
    Tensors tensors = start(dtype);
    for (int step = 1; step <= byte_script()["steps"]; ++step) {
      const Tensors given = inputs(tensors, gradient(step, dtype), step, dtype);
      const Graph graph = single_node(choice_.op, given, choice_.settings);
      tensors = run_node(kernel, graph, graph.nodes[0], given);
    }
    const bool is_exact = dtype == DType::float64;
    const std::int64_t stride = byte_script()["stride"];
    std::int64_t others = 0, compared = 0;
    for (std::int64_t i = 0; i < elements_; i += stride, ++compared) {
      const double expected = json_["w"][static_cast<std::size_t>(compared)];
      const double difference = std::abs(tensors[0].number(i) - expected);
      others += difference > (is_exact ? 1e-12 : 2e-6);
      EXPECT_LE(difference, is_exact ? 1e-12 : 0.05 * options_.lr) << i;
    }
    EXPECT_LE(others, is_exact ? 0 : compared / 100);
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_LE(share_of_others(tensors[1 + k], tensors[3 + k], json_["codes"][k]),
                is_exact ? 0 : 2e-3);
      const auto expected = json_["scales"][k].get<std::vector<double>>();
      ASSERT_EQ(static_cast<std::size_t>(tensors[3 + k].type().elements()), expected.size());
      for (std::size_t b = 0; b < expected.size(); ++b)
        EXPECT_NEAR(tensors[3 + k].number(static_cast<std::int64_t>(b)), expected[b],
                    (is_exact ? 1e-12 : 1e-2) * expected[b]);
    }
  });
}

TEST_P(ByteOptimizers, LeaveOutWhatIsSkipped) {
  each([&](const Kernel& kernel, DType dtype) {
    Tensors before = start(dtype);
    const Tensors given = inputs(before, gradient(3, dtype), 3, dtype);
    const Graph graph = single_node(choice_.op, given, choice_.settings);
    before = run_node(kernel, graph, graph.nodes[0], given);
    const Tensors skipped = inputs(before, gradient(4, dtype), 4, dtype, true);
    const Tensors after = run_node(kernel, graph, graph.nodes[0], skipped);
    for (std::size_t k = 0; k < before.size(); ++k)
      EXPECT_EQ(std::memcmp(before[k].data(), after[k].data(), before[k].bytes()), 0) << k;
  });
}

// A gradient of 16 bits is what it is in float32; the weight is the master in 16 bits.
TEST_P(ByteOptimizers, TakeAndMake16Bits) {
  for (const DType half : {DType::bfloat16, DType::float16}) {
    const HostTensor narrow = gradient(1, DType::float32).converted(half);
    Attributes settings = choice_.settings;
    const Tensors wide_inputs =
        inputs(start(DType::float32), narrow.converted(DType::float32), 1, DType::float32);
    const Graph wide = single_node(choice_.op, wide_inputs, settings);
    settings.set("weight", std::string(name_of(half)));
    Tensors narrow_inputs = inputs(start(DType::float32), narrow, 1, DType::float32);
    narrow_inputs.emplace_back(TensorType{half, {elements_}});
    const Graph graph = single_node(choice_.op, narrow_inputs, settings);
    each_kernel(graph, [&](const Kernel& kernel) {
      const Tensors a = run_node(kernel, wide, wide.nodes[0], wide_inputs),
                    b = run_node(kernel, graph, graph.nodes[0], narrow_inputs);
      for (std::size_t k = 0; k < a.size(); ++k)
        EXPECT_EQ(std::memcmp(a[k].data(), b[k].data(), a[k].bytes()), 0) << k;
      EXPECT_EQ(std::memcmp(b.back().data(), a[0].converted(half).data(), b.back().bytes()), 0);
    });
  }
}

std::vector<ByteCase> byte_cases() {
  std::vector<ByteCase> all;
  for (std::size_t i = 0; i < byte_script()["cases"].size(); ++i) all.push_back({i});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, ByteOptimizers, ::testing::ValuesIn(byte_cases()),
                         [](const auto& info) {
                           return info.param.json()["name"].template get<std::string>();
                         });

TEST(ByteOptimizersTest, SmallParametersKeep32Bits) {
  for (const char* name : {"adam8bit", "adamw8bit"}) {
    const OptimizerOptions options(name);
    EXPECT_EQ(choose_update(options, 4095).op, "AdamUpdate");
    EXPECT_EQ(choose_update(options, 4095).settings.flag("decoupled"),
              std::string(name) == "adamw8bit");
    EXPECT_EQ(choose_update(options, 4096).op, "Adam8bitUpdate");
  }
}

}  // namespace
}  // namespace tandem::testing
