// Files of torch.save: values as PyTorch reads them (tests/scripts/torch_weights.py), and files
// that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/formats/weights/weights_file.h"
#include "tests/harness/folders.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/pickle_bytes.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const std::string folder = source_folder() + "/tests/data/torch_weights/";

std::vector<double> numbers_of(const HostTensor& tensor) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i) numbers.push_back(tensor.number(i));
  return numbers;
}

TEST(TorchWeights, HoldWhatPyTorchReads) {
  const auto expected = nlohmann::json::parse(read_file(folder + "expected.json"));
  EXPECT_EQ(expected.size(), 6u);
  for (const auto& [name, tensors] : expected.items()) {
    const auto file = open_weights(folder + name + ".pt");
    EXPECT_EQ(file->names().size(), tensors.size()) << name;
    for (const auto& [key, tensor] : tensors.items()) {
      SCOPED_TRACE(name + " " + key);
      const TensorType type = file->type(key);
      EXPECT_EQ(name_of(type.dtype), tensor["dtype"].get<std::string>());
      EXPECT_EQ(type.shape, tensor["shape"].get<Shape>());
      const auto values = tensor["values"].get<std::vector<double>>();
      EXPECT_EQ(numbers_of(file->read(key, type.dtype)), values);
      EXPECT_EQ(numbers_of(file->read(key, DType::float64)), values);
      const std::optional<HostTensor> pages = file->pages(key);
      EXPECT_EQ(numbers_of(pages ? *pages : file->read(key, type.dtype)), values);
    }
  }
}

TEST(TorchWeights, SayWhatIsShared) {
  const auto file = open_weights(folder + "views.pt");
  EXPECT_TRUE(file->pages("base").has_value());
  EXPECT_FALSE(file->pages("transposed").has_value());
  EXPECT_EQ(file->first_name("tied_too"), "tied");
  EXPECT_EQ(file->first_name("tied"), "tied");
  EXPECT_EQ(file->first_name("corner"), "corner") << "another place of the storage of base";
  EXPECT_THAT(file->notes(),
              ElementsAre(AllOf(HasSubstr("left out"),
                                HasSubstr("rotations (torch.ComplexFloatStorage)"))));
  EXPECT_THAT(open_weights(folder + "nested.pt")->notes(),
              ElementsAre(HasSubstr("those under \"state_dict\"")));
  EXPECT_THAT(open_weights(folder + "halves.pt")->names(),
              UnorderedElementsAre("encoder.w", "decoder.w"));
}

TEST(TorchWeights, OtherFilesOfPyTorchAreRefused) {
  const auto refusal = [](const std::string& name) {
    return error_of([&] { open_weights(folder + name); });
  };
  EXPECT_THAT(refusal("legacy.pt"), AllOf(HasSubstr("legacy.pt: the older format of torch.save"),
                                          HasSubstr("torch.save(torch.load(f), f2)")));
  EXPECT_THAT(refusal("script.pt"), AllOf(HasSubstr("TorchScript"), HasSubstr("state_dict()")));
  EXPECT_THAT(refusal("module.pt"), AllOf(HasSubstr("data.pkl: it asks for __main__.Small"),
                                          HasSubstr("torch.save(model.state_dict()")));
  EXPECT_THAT(refusal("hostile.pt"), AllOf(HasSubstr("data.pkl: it asks for posix.system"),
                                           HasSubstr("nothing of it was executed")));
  EXPECT_THAT(refusal("empty.pt"), AllOf(HasSubstr("no dict of tensors"),
                                         HasSubstr("got a dict with \"epoch\", \"names\"")));
}

class HandMadeTorchWeights : public ::testing::Test {
 protected:
  std::unique_ptr<WeightsFile> open(const std::string& bytes) {
    write_file(path_, bytes);
    return open_weights(path_);
  }
  std::unique_ptr<WeightsFile> open(const PickledTensor& tensor) {
    return open(torch_archive(pickled_dict("w", tensor.bytes()), floats_as_bytes({1, 2, 3})));
  }
  template <class What>
  std::string refusal(const What& what) {
    return error_of([&] { open(what); });
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "w.bin";
};

TEST_F(HandMadeTorchWeights, AreReadByStridesAndOffsets) {
  EXPECT_THAT(numbers_of(open(PickledTensor{})->read("w", DType::float32)), ElementsAre(1, 2, 3));
  const auto file = open(PickledTensor{.shape = {2, 2}, .strides = {0, 1}, .offset = 1});
  EXPECT_THAT(numbers_of(file->read("w", DType::float32)), ElementsAre(2, 3, 2, 3));
}

TEST_F(HandMadeTorchWeights, TensorsLieInTheirStorage) {
  EXPECT_THAT(refusal(PickledTensor{.shape = {4}}),
              AllOf(HasSubstr("w.bin: w: it reaches beyond its storage"),
                    HasSubstr("expected 3 elements at most"), HasSubstr("got float32[4]")));
  const auto is_beyond = HasSubstr("reaches beyond");
  EXPECT_THAT(refusal(PickledTensor{.offset = 1}), is_beyond);
  EXPECT_THAT(refusal(PickledTensor{.strides = {2}}), is_beyond);
  EXPECT_THAT(refusal(PickledTensor{.shape = {2}, .strides = {std::int64_t{1} << 62}, .offset = 2}),
              is_beyond);
  EXPECT_THAT(refusal(PickledTensor{.shape = {5}, .strides = {std::int64_t{1} << 62}}), is_beyond);
  EXPECT_THAT(refusal(PickledTensor{.shape = {0}, .offset = 4}), is_beyond);
  EXPECT_EQ(refusal(PickledTensor{.shape = {0}, .offset = 3}), "no error");
  EXPECT_THAT(refusal(PickledTensor{.strides = {-1}, .offset = 2}),
              HasSubstr("expected an integer of 0 or more"));
  EXPECT_THAT(refusal(PickledTensor{.offset = -1}), HasSubstr("an integer of 0 or more"));
  EXPECT_THAT(refusal(PickledTensor{.strides = {1, 1}}), HasSubstr("do not fit its shape"));
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THAT(refusal(PickledTensor{.shape = {large, large}, .strides = {0, 0}}),
              HasSubstr("too large"));
  EXPECT_THAT(refusal(PickledTensor{.shape = std::vector<std::int64_t>(65, 1),
                                    .strides = std::vector<std::int64_t>(65, 1)}),
              HasSubstr("no tuple of numbers"));
}

// One element that claims to be 4 TiB: its type can be asked for, its values cannot.
TEST_F(HandMadeTorchWeights, ExpandedTensorsTakeWhatIsAskedFor) {
  const auto file = open(PickledTensor{.shape = {std::int64_t{1} << 40}, .strides = {0}});
  EXPECT_EQ(file->type("w").shape, Shape{std::int64_t{1} << 40});
  EXPECT_THAT(error_of([&] { file->read("w", DType::float32); }),
              AllOf(HasSubstr("w.bin: w: "), HasSubstr("more memory than there is")));
}

TEST_F(HandMadeTorchWeights, StoragesAreFilesOfTheArchive) {
  EXPECT_THAT(refusal(PickledTensor{.key = "1"}), HasSubstr("lacks the file w/data/1"));
  EXPECT_THAT(refusal(PickledTensor{.elements = 4}),
              HasSubstr("w/data/0 has 12 bytes, not the 16 of the tensor's storage"));
  EXPECT_THAT(refusal(PickledTensor{.type = "DoubleStorage"}), HasSubstr("not the 24"));
  EXPECT_THAT(refusal(PickledTensor{.elements = std::int64_t{1} << 62}),
              HasSubstr("impossibly large"));
  EXPECT_EQ(refusal(PickledTensor{.type = "QInt8Storage"}), "no error") << "it is skipped";
}

TEST_F(HandMadeTorchWeights, BrokenArchives) {
  const std::string pickle = pickled_dict("w", PickledTensor{}.bytes());
  const std::string storage = floats_as_bytes({1, 2, 3});
  const auto archive = [&](const std::vector<ZipMember>& more) {
    std::vector<ZipMember> members{stored("w/data.pkl", pickle)};
    members.insert(members.end(), more.begin(), more.end());
    return zip_archive(members);
  };
  EXPECT_THAT(refusal(archive({packed("w/data/0", storage)})), HasSubstr("compressed storage"));
  EXPECT_THAT(refusal(archive({stored("w/data/0", storage), stored("x/data.pkl", pickle)})),
              HasSubstr("two pickles"));
  EXPECT_THAT(refusal(archive({stored("w/data/0", storage), stored("w/byteorder", "big")})),
              HasSubstr("byte order of another machine"));
  EXPECT_THAT(refusal(zip_archive({stored("w.npy", "x")})), HasSubstr("it lacks data.pkl"));
  EXPECT_THAT(refusal(zip_archive({packed("w/data.pkl", pickle), stored("w/data/0", storage)})),
              ::testing::StrEq("no error"));
  ZipMember wrong = stored("w/data/0", storage);
  ++wrong.crc;
  const auto damaged = open(archive({wrong}));
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(error_of([&] { damaged->read("w", DType::float32); }), HasSubstr("checksum"));
  wrong.crc = 0;  // torch.serialization.set_crc32_options(False)
  EXPECT_THAT(numbers_of(open(archive({wrong}))->read("w", DType::float32)), ElementsAre(1, 2, 3));
  wrong.bytes = 1 << 20;
  EXPECT_THAT(refusal(archive({wrong})), HasSubstr("w.bin: "));
  EXPECT_THAT(refusal(std::string("not a file of weights")),
              HasSubstr("not a PyTorch (zip) archive"));
  EXPECT_THAT(refusal(std::string("version https://git-lfs.github.com/spec/v1\n")),
              AllOf(HasSubstr("Git LFS"), HasSubstr("git lfs pull")));
  EXPECT_THAT(refusal(std::string()), HasSubstr("w.bin"));
}

// 100 MiB of zeros in 100 KiB, where the pickle should be.
TEST_F(HandMadeTorchWeights, PicklesThatUnpackToTooMuch) {
  constexpr std::size_t repeats = 100;
  const std::string block(std::size_t{1} << 20, '\0');
  const ZipMember bomb{"w/data.pkl", deflated_repeats("", block, repeats), repeats * block.size(),
                       crc_of_repeats("", block, repeats)};
  EXPECT_THAT(refusal(zip_archive({bomb})), HasSubstr("more than the 67108864 bytes"));
}

TEST_F(HandMadeTorchWeights, CutOffAnywhere) {
  const std::string whole = read_file(folder + "plain.pt");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    ASSERT_THAT(refusal(whole.substr(0, size)), HasSubstr("w.bin")) << size;
  }
}

}  // namespace
}  // namespace tandem
