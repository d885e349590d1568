// safetensors: round trips, and every way in which a file can be broken.
#include "engine/formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using testing::same_bytes;
using testing::TemporaryFolder;

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header +
         std::string(data_bytes, 'd');
}

TEST(Safetensors, RoundTripKeepsEverything) {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> tensors = {
      {"w", HostTensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6})},
      {"flag", HostTensor::from<std::uint8_t>({3}, {1, 2, 3})},
      {"count", HostTensor::from<std::int64_t>({}, {42})},
      {"empty", HostTensor(TensorType{DType::float32, {0, 4}})},
      {"half \"quoted\" ü", HostTensor::from<BFloat16>({1}, {BFloat16(1.5f)})},
      {"eighth", HostTensor::from<float>({2}, {0.125f, -448}).converted(DType::float8_e4m3fn)},
      {"other eighth", HostTensor::from<float>({1}, {1e4f}).converted(DType::float8_e5m2)},
      {"scale", HostTensor::from<float>({1}, {0x1p-60f}).converted(DType::float8_e8m0fnu)},
  };
  const WrittenFile written =
      write_safetensors(folder / "m.safetensors", tensors, {{"format", "pt"}, {"alias", "a=b"}});
  EXPECT_EQ(written.bytes, file_size(folder / "m.safetensors"));
  EXPECT_EQ(written.sha256, hash_file(folder / "m.safetensors").sha256);
  const std::string raw = read_file(folder / "m.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, raw.data(), 8);
  EXPECT_EQ(header % 8, 0u);
  for (const char* tag : {R"("F8_E4M3")", R"("F8_E5M2")", R"("F8_E8M0")"})
    EXPECT_NE(raw.find(tag), std::string::npos) << tag;

  const SafetensorsFile file(folder / "m.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at("alias"), "a=b");
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const HostTensor* read = file.find(tensor.name);
    ASSERT_TRUE(read) << tensor.name;
    EXPECT_EQ(read->type(), tensor.tensor.type());
    EXPECT_TRUE(same_bytes(*read, tensor.tensor)) << tensor.name;
  }
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_EQ(file.tensors()[0].name, "count");  // wider elements first
}

TEST(Safetensors, TensorsOutliveTheFileObject) {
  const TemporaryFolder folder;
  write_safetensors(folder / "m", {{"w", HostTensor::from<float>({2}, {3, 4})}});
  HostTensor kept;
  {
    const SafetensorsFile file(folder / "m");
    kept = *file.find("w");
  }
  EXPECT_EQ(kept.as<float>()[1], 4);
}

// This would take half an hour if the parser searched all tensors whenever one ends.
TEST(Safetensors, ManyTensorsAreRead) {
  const TemporaryFolder folder;
  constexpr std::size_t count = 300'000;
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < count; ++i)
    tensors.push_back({"t" + std::to_string(i), HostTensor::from<float>({1}, {float(i % 1000)})});
  write_safetensors(folder / "many.safetensors", tensors, {});
  const SafetensorsFile file(folder / "many.safetensors");
  ASSERT_EQ(file.tensors().size(), count);
  EXPECT_EQ(file.find("t299999")->as<float>()[0], 999);
}

TEST(Safetensors, RefusesNamesThatCannotBeStored) {
  const TemporaryFolder folder;
  const HostTensor x = HostTensor::from<float>({1}, {1});
  EXPECT_THROW(write_safetensors(folder / "m", {{"a", x}, {"a", x}}), Error);
  EXPECT_THROW(write_safetensors(folder / "m", {{"__metadata__", x}}), Error);
  EXPECT_THROW(write_safetensors(folder / "m", {{"\xff", x}}), Error);
}

struct Broken {
  const char* name;
  std::string content;
  const char* says;
};
void PrintTo(const Broken& c, std::ostream* stream) { *stream << c.name; }

class SafetensorsBroken : public ::testing::TestWithParam<Broken> {};

TEST_P(SafetensorsBroken, IsRefusedByName) {
  const TemporaryFolder folder;
  write_file(folder / "bad.safetensors", GetParam().content);
  try {
    const SafetensorsFile file(folder / "bad.safetensors");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    const std::string text = error.what();
    EXPECT_NE(text.find("bad.safetensors"), std::string::npos) << text;
    EXPECT_NE(text.find(GetParam().says), std::string::npos) << text;
  }
}

const char* const one = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

INSTANTIATE_TEST_SUITE_P(
    All, SafetensorsBroken,
    ::testing::Values(
        Broken{"empty", "", "shorter than 8"},
        Broken{"header_too_long", file_of(one, 8).replace(0, 8, std::string(8, '\x7f')), "length"},
        Broken{"not_an_object", file_of("[1]", 0), "start with {"},
        Broken{"not_json", file_of("{\"a\":", 0), "not JSON"},
        Broken{"twice",
               file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                       8),
               "twice"},
        Broken{"cut", file_of(one, 7), "cut off"}, Broken{"longer", file_of(one, 9), "follow"},
        Broken{"hole", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
               "hole"},
        Broken{"overlap",
               file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                       12),
               "overlaps"},
        Broken{"size", file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
               "do not fit its shape"},
        Broken{"backwards", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
               "do not fit"},
        Broken{"overflow",
               file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],)"
                       R"("data_offsets":[0,8]}})",
                       8),
               "too large"},
        Broken{"negative", file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
               "not a list of extents"},
        Broken{"type", file_of(R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", 8),
               "C64"},
        Broken{"members", file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "other members"},
        Broken{"metadata", file_of(R"({"__metadata__":{"n":1}})", 0), "else than text"},
        Broken{"deep", file_of("{\"a\":" + std::string(100000, '['), 0), "nested"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tandem
