// Sources: functions of fields, splits, errors with file and row.
#include "engine/data/data_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "engine/config/keys/config_check.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/few_addresses.h"
#include "tests/harness/peak_memory.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/packed_files.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::bomb;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::npy_start;
using testing::packed;
using testing::peak_memory_of;
using testing::stored;
using testing::TemporaryFolder;
using testing::zip_archive;

FieldConfig field(const std::string& from, const std::vector<std::string>& as,
                  const std::vector<std::string>& augment = {}) {
  FieldConfig result{.name = "x", .from = from};
  for (const std::string& text : as) result.as.push_back(parse_transform(text));
  for (const std::string& text : augment) result.augment.push_back(parse_transform(text));
  return result;
}

HostTensor apply(const HostTensor& samples, const std::vector<std::string>& as,
                 const std::vector<std::string>& augment = {},
                 const Augmentation* random = nullptr) {
  const auto source = make_array_source({{"a", samples}}, {field("a", as, augment)});
  TensorType type = source->fields()[0].sample;
  std::vector<std::int64_t> all(static_cast<std::size_t>(source->samples()));
  std::iota(all.begin(), all.end(), 0);
  type.shape.insert(type.shape.begin(), source->samples());
  HostTensor result(type);
  source->fill(0, all, random, result.data());
  return result;
}

std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i) result.push_back(tensor.number(i));
  return result;
}

TEST(Transforms, ComputeWhatTheySay) {
  const HostTensor bytes = HostTensor::from<std::uint8_t>({1, 2, 1, 2}, {0, 51, 102, 255});
  EXPECT_EQ(numbers(apply(bytes, {"scale(1/255)"})), (std::vector<double>{0, 0.2f, 0.4f, 1}));
  EXPECT_EQ(numbers(apply(bytes, {"normalize(51, 2)"})),
            (std::vector<double>{-25.5, 0, 25.5, 102}));
  EXPECT_EQ(numbers(apply(bytes, {"normalize([0, 102], [51, 153])"})),
            (std::vector<double>{0, 1, 0, 1}));
  EXPECT_EQ(apply(bytes, {"flatten"}).shape(), (Shape{1, 4}));
  EXPECT_EQ(apply(bytes, {"reshape(4, -1)"}).shape(), (Shape{1, 4, 1}));
  EXPECT_EQ(apply(bytes, {"int64"}).type(), (TensorType{DType::int64, {1, 2, 1, 2}}));
  const HostTensor labels = HostTensor::from<std::int64_t>({2}, {2, 0});
  EXPECT_EQ(numbers(apply(labels, {"one_hot(3)"})), (std::vector<double>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(apply(labels, {"one_hot(3)"}).shape(), (Shape{2, 3}));
  EXPECT_EQ(numbers(apply(labels, {"one_hot(2, first=1)"})), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(numbers(apply(HostTensor::from<float>({1, 2}, {0.5f, -3}), {"bool"})),
            (std::vector<double>{1, 1}));
}

// log1p is computed in double and rounded once, so that log(7) is the float32 next to it.
TEST(Transforms, FunctionsOfNumbers) {
  const HostTensor floats = HostTensor::from<float>({4, 1}, {-3, 0, 6, 12.5f});
  EXPECT_EQ(apply(floats, {"log1p"}).type(), (TensorType{DType::float32, {4, 1}}));
  EXPECT_EQ(numbers(apply(floats, {"log1p"})),
            (std::vector<double>{0, 0, 1.9459101f, 2.60268974f}));
  EXPECT_EQ(apply(floats, {"bucketize(0, 6)"}).type(), (TensorType{DType::int64, {4, 1}}));
  EXPECT_EQ(numbers(apply(floats, {"bucketize(0, 6)"})), (std::vector<double>{0, 1, 2, 2}));
  EXPECT_EQ(numbers(apply(floats, {"log1p", "bucketize(1.9, 2.7)", "one_hot(3)"})),
            (std::vector<double>{1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0}));
  const HostTensor bytes = HostTensor::from<std::uint8_t>({3}, {0, 1, 255});
  EXPECT_EQ(numbers(apply(bytes, {"log1p"})), (std::vector<double>{0, 0.693147182f, 5.54517746f}));
  EXPECT_EQ(numbers(apply(bytes, {"bucketize(1, 255)"})), (std::vector<double>{0, 1, 2}));
}

// What is not a number of the integer type is refused with its row, whatever comes before and
// after.
TEST(Transforms, IntegerTypesTakeTheirNumbersAlone) {
  const auto of = [](const HostTensor& values, const std::string& type) {
    return error_of([&] { apply(values, {type}); });
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto floats = [](std::vector<float> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return HostTensor::from<float>({count}, values);
  };
  EXPECT_EQ(of(floats({0, 1, 1.7f}), "int64"),
            "memory:3: data.fields.x: 1.7 is not a whole number, as int64 has them (ids and class "
            "numbers are whole numbers; float32 keeps others as they are)");
  EXPECT_THAT(of(floats({-0.5f}), "uint8"), HasSubstr("memory:1: data.fields.x: -0.5 is not a"));
  EXPECT_THAT(of(floats({0, nan}), "int32"), HasSubstr("memory:2: data.fields.x: nan is not a"));
  EXPECT_THAT(of(floats({infinity}), "int64"), HasSubstr("inf is not a whole number"));
  EXPECT_THAT(of(floats({1e30f}), "int64"), HasSubstr("1e+30 does not fit int64"));
  EXPECT_THAT(of(floats({2147483648.0f}), "int32"), HasSubstr("2147483648 does not fit int32"));
  EXPECT_THAT(of(floats({256}), "uint8"), HasSubstr("256 does not fit uint8"));
  EXPECT_THAT(of(floats({1, 0.5f}).converted(DType::float16), "int32"), HasSubstr("0.5 is not a"));

  const std::int64_t two_32 = std::int64_t{1} << 32;
  const HostTensor wide = HostTensor::from<std::int64_t>({2}, {5, two_32 + 1});
  EXPECT_THAT(of(wide, "int32"),
              HasSubstr("memory:2: data.fields.x: 4294967297 does not fit int32"));
  EXPECT_THAT(of(HostTensor::from<std::int64_t>({1}, {-1}), "uint8"), HasSubstr("-1 does not fit"));
  EXPECT_THAT(of(HostTensor::from<std::uint64_t>({1}, {std::uint64_t{1} << 63}), "int64"),
              HasSubstr("9223372036854775808 does not fit int64"));

  const std::vector<double> edges{-2147483648.0, -1, 0, 2147483647.0};
  EXPECT_EQ(numbers(apply(HostTensor::from<double>({4}, edges), {"int32"})), edges);
  EXPECT_EQ(numbers(apply(HostTensor::from<double>({2}, {-0.0, 255}), {"uint8"})),
            (std::vector<double>{0, 255}));
  EXPECT_EQ(numbers(apply(wide, {"int64", "float32"})),
            (std::vector<double>{5, static_cast<float>(two_32)}));
}

// With out_of_range = "zero" such an id becomes one that no table has; a fraction is not an id.
TEST(Transforms, IdsBeyondTheirTypeAreNoRow) {
  FieldConfig ids = field("a", {"int32"});
  ids.out_of_range = OutOfRange::zero;
  const auto read = [&](const HostTensor& values) {
    const auto source = make_array_source({{"a", values}}, {ids});
    std::vector<std::int32_t> result(static_cast<std::size_t>(source->samples()));
    std::vector<std::int64_t> all(result.size());
    std::iota(all.begin(), all.end(), 0);
    source->fill(0, all, nullptr, result.data());
    return result;
  };
  const std::int64_t two_32 = std::int64_t{1} << 32;
  EXPECT_EQ(read(HostTensor::from<std::int64_t>({4}, {3, two_32 + 1, -two_32, 4})),
            (std::vector<std::int32_t>{3, -1, -1, 4}));
  EXPECT_EQ(read(HostTensor::from<float>({2}, {3, 1e30f})), (std::vector<std::int32_t>{3, -1}));
  EXPECT_THAT(error_of([&] {
                read(HostTensor::from<float>({2}, {3, 0.5f}));
              }),
              HasSubstr("memory:2: data.fields.x: 0.5 is not a whole number"));
}

TEST(Transforms, ResizeIsBilinearWithHalfPixelCentres) {
  const HostTensor image = HostTensor::from<float>({1, 2, 2}, {0, 4, 8, 12});
  EXPECT_EQ(numbers(apply(image, {"resize(1, 1)"})), std::vector<double>{6});
  EXPECT_EQ(numbers(apply(image, {"resize(2, 4)"})),
            (std::vector<double>{0, 1, 3, 4, 8, 9, 11, 12}));
  EXPECT_EQ(numbers(apply(image, {"resize(2)"})), numbers(image));
  const HostTensor bytes = HostTensor::from<std::uint8_t>({1, 1, 2}, {0, 255});
  EXPECT_EQ(numbers(apply(bytes, {"resize(1, 1)"})), std::vector<double>{128});
}

TEST(Transforms, AugmentationIsSeededAndRandom) {
  std::vector<std::uint8_t> pixels(64 * 4 * 4);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i % 16 + 1);
  const HostTensor images = HostTensor::from<std::uint8_t>({64, 1, 4, 4}, pixels);
  const std::vector<std::string> augment = {"random_crop(4, padding=1)", "random_flip"};
  const Augmentation first{1, 0}, same{1, 0}, later{1, 1}, other{2, 0};
  const auto run = [&](const Augmentation* a) { return numbers(apply(images, {}, augment, a)); };
  EXPECT_EQ(run(&first), run(&same));
  EXPECT_NE(run(&first), run(&later));
  EXPECT_NE(run(&first), run(&other));
  EXPECT_EQ(run(nullptr), numbers(images));

  // All 9 places times 2 sides come up, each sample is a window of the padded image.
  std::set<std::vector<double>> variants;
  const std::vector<double> all = run(&first);
  for (std::size_t i = 0; i < 64; ++i) {
    const std::vector<double> sample(all.begin() + static_cast<long>(i) * 16,
                                     all.begin() + static_cast<long>(i + 1) * 16);
    variants.insert(sample);
    EXPECT_EQ(sample[5] > 0 && sample[10] > 0, true);  // the middle never comes from the padding
  }
  EXPECT_GT(variants.size(), 12u);
  EXPECT_LE(variants.size(), 18u);
}

TEST(Transforms, ErrorsNameTheFunction) {
  const HostTensor image = HostTensor::from<std::uint8_t>({1, 4}, {1, 2, 3, 4});
  EXPECT_THAT(error_of([&] { apply(image, {"resize(2)"}); }),
              HasSubstr("resize(2): an image has two"));
  EXPECT_THAT(error_of([&] { apply(image, {"reshape(3, -1)"}); }), HasSubstr("do not make"));
  EXPECT_THAT(error_of([&] { apply(image, {"normalize([1, 2], [1, 1])"}); }), HasSubstr("2 means"));
  EXPECT_THAT(error_of([&] {
                apply(image, {"float32", "one_hot(3)"});
              }),
              HasSubstr("takes integers"));
  EXPECT_THAT(error_of([&] { apply(image, {"one_hot(4)"}); }),
              HasSubstr("memory:1: data.fields.x: class 4"));
  EXPECT_THAT(error_of([&] {
                apply(HostTensor::from<std::int64_t>({2}, {0, 3}), {"one_hot(2, first=1)"});
              }),
              HasSubstr("class 3 is not below 3"));
  EXPECT_THAT(error_of([&] { apply(image, {"reshape(2,2)"}, {"random_crop(1)"}); }),
              HasSubstr("augmentation gives"));
  EXPECT_THAT(error_of([&] { apply(image, {"reshape(2,2)"}, {"random_crop(3)"}); }),
              HasSubstr("larger than"));
}

TEST(DataSource, IntegersTakeTheTypeThatTheGraphWants) {
  OpenOptions options;
  options.integer_types["x"] = DType::int64;
  const auto source = make_array_source({{"a", HostTensor::from<std::uint8_t>({2}, {3, 200})}},
                                        {field("a", {})}, options);
  EXPECT_EQ(source->fields()[0].sample, (TensorType{DType::int64, {}}));
  std::int64_t values[2];
  source->fill(0, std::vector<std::int64_t>{1, 0}, nullptr, values);
  EXPECT_EQ(values[0], 200);
  EXPECT_EQ(values[1], 3);

  options.keep_int32 = {"x"};
  const auto type_of = [&](HostTensor array) {
    return make_array_source({{"a", std::move(array)}}, {field("a", {})}, options)
        ->fields()[0]
        .sample.dtype;
  };
  EXPECT_EQ(type_of(HostTensor::from<std::int32_t>({1}, {3})), DType::int32);
  EXPECT_EQ(type_of(HostTensor::from<std::uint8_t>({1}, {3})), DType::int64);
}

DataConfig npz_config(std::vector<std::string> train, std::vector<std::string> eval = {}) {
  DataConfig config;
  config.train.files.push_back({"", std::move(train), {"train.toml", 3, 1}});
  if (!eval.empty()) config.eval.files.push_back({"", std::move(eval), {"train.toml", 5, 1}});
  return config;
}

TEST(OpenData, Int32StaysWhereBothSplitsHaveIt) {
  const TemporaryFolder folder;
  write_npz(folder / "a.npz", {{"x", HostTensor::from<std::int32_t>({2}, {0, 1})}});
  write_npz(folder / "b.npz", {{"x", HostTensor::from<std::int64_t>({2}, {0, 1})}});
  OpenOptions options;
  options.integer_types["x"] = DType::int64;
  options.keep_int32 = {"x"};
  const auto type_with = [&](const std::string& eval) {
    const DataSets sets = open_data(npz_config({folder / "a.npz"}, {folder / eval}), options);
    EXPECT_EQ(sets.train->fields()[0].sample, sets.eval->fields()[0].sample);
    return sets.train->fields()[0].sample.dtype;
  };
  EXPECT_EQ(type_with("a.npz"), DType::int32);
  EXPECT_EQ(type_with("b.npz"), DType::int64);
}

// Neighbours in a file are copied as one piece; files, gaps and repetitions end it.
TEST(OpenData, TakesSamplesInAnyOrder) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::vector<float>& values) {
    const auto rows = static_cast<std::int64_t>(values.size()) / 2;
    write_npz(folder / name, {{"x", HostTensor::from<float>({rows, 2}, values)}});
  };
  write("a.npz", {0, 1, 10, 11, 20, 21});
  write("b.npz", {30, 31, 40, 41});
  const DataSets sets = open_data(npz_config({folder / "a.npz", folder / "b.npz"}, {}));
  const std::vector<std::int64_t> samples{1, 2, 3, 4, 0, 0, 1, 4, 2};
  std::vector<float> rows(2 * samples.size()), wanted;
  for (const std::int64_t sample : samples) {
    wanted.push_back(static_cast<float>(10 * sample));
    wanted.push_back(static_cast<float>(10 * sample + 1));
  }
  sets.train->fill(0, samples, nullptr, rows.data());
  EXPECT_EQ(rows, wanted);
}

TEST(OpenData, JoinsFilesAndNamesBadRows) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, std::vector<std::int64_t> labels) {
    const auto rows = static_cast<std::int64_t>(labels.size());
    write_npz(folder / name, {{"x", HostTensor(TensorType{DType::float32, {rows, 2}})},
                              {"y", HostTensor::from<std::int64_t>({rows}, labels)}});
  };
  write("a.npz", {0, 1, 2});
  write("b.npz", {3, -1, 7, 4});
  const DataSets sets =
      open_data(npz_config({folder / "a.npz", folder / "b.npz"}, {folder / "a.npz"}));
  EXPECT_EQ(sets.train->samples(), 7);
  EXPECT_EQ(sets.eval->samples(), 3);
  const int y = sets.train->find_field("y");
  EXPECT_EQ(sets.train->find_field("z"), -1);
  EXPECT_EQ(sets.train->describe(y, 2), (folder / "a.npz") + ":3");
  EXPECT_EQ(sets.train->describe(y, 3), (folder / "b.npz") + ":1");
  sets.eval->check_range(y, 3, nullptr);
  sets.eval->check_numbers(y, 0, 2, "0 to 2");
  const std::string text = error_of([&] { sets.train->check_range(y, 5, nullptr); });
  EXPECT_THAT(text,
              HasSubstr("b.npz:2: data.fields.y: out of range (and 1 row more): expected 0 to 4, "
                        "got -1; all that are out of range: -1 to 7"));
  const std::int64_t ignore = -1;
  sets.train->check_range(y, 8, &ignore);
}

TEST(OpenData, ReportsEverythingAtOnce) {
  const TemporaryFolder folder;
  write_npz(folder / "a.npz", {{"x", HostTensor(TensorType{DType::float32, {4, 2}})},
                               {"y", HostTensor(TensorType{DType::int64, {3}})}});
  write_npz(folder / "wide.npz", {{"x", HostTensor(TensorType{DType::float32, {4, 3}})}});
  write_npz(folder / "b.npz", {{"x", HostTensor(TensorType{DType::float32, {4, 2}})}});
  std::string text =
      error_of([&] { open_data(npz_config({folder / "a.npz"}, {folder / "gone.npz"})); });
  EXPECT_THAT(text, HasSubstr("another number of samples"));
  EXPECT_THAT(text, HasSubstr("train.toml:5:1: no such file"));
  text = error_of([&] { open_data(npz_config({folder / "b.npz", folder / "wide.npz"})); });
  EXPECT_THAT(text, HasSubstr("expected float32[2], got float32[3]"));
  text = error_of([&] { open_data(npz_config({folder / "b.npz"}, {folder / "wide.npz"})); });
  EXPECT_THAT(text, HasSubstr("the held-out data has another type"));
  DataConfig config = npz_config({folder / "b.npz"});
  config.fields = {field("xs", {})};
  EXPECT_THAT(error_of([&] { open_data(config); }), HasSubstr("did you mean \"x\"?"));
}

FieldConfig named(const std::string& name) {
  FieldConfig result = field(name, {});
  result.name = name;
  return result;
}

TEST(OpenData, ArraysThatNoFieldNamesAreNotLookedAt) {
  const TemporaryFolder folder;
  const std::string numbers = npy_start("<f4", "(2,)") + std::string(8, '\0');
  write_file(folder / "a.npz",
             zip_archive({packed("x.npy", numbers), bomb("bomb.npy"),
                          stored("one.npy", npy_start("<f4", "()") + std::string(4, '\0')),
                          stored("names.npy", npy_start("<U1", "(2,)") + std::string(8, 'a')),
                          packed("long.npy", npy_start("|u1", "(9,)") + std::string(9, '\0'))}));
  DataConfig config = npz_config({folder / "a.npz"}, {folder / "a.npz"});
  config.fields = {named("x")};
  const std::size_t peak = peak_memory_of([&] {
    const DataSets sets = open_data(config);
    if (sets.train->samples() != 2 || sets.eval->samples() != 2) throw 1;
  });
  EXPECT_LT(peak, std::size_t{16} << 20);
  config.fields = {named("x"), named("bom")};
  EXPECT_THAT(error_of([&] { open_data(config); }),
              AllOf(HasSubstr("no array `bom`"), HasSubstr("did you mean \"bomb\"?"),
                    HasSubstr("long, names, one")));
  config.fields = {named("x"), named("long")};
  EXPECT_THAT(error_of([&] { open_data(config); }), HasSubstr("another number of samples"));
}

TEST(OpenData, ArraysBeyondTheMachineAreRefusedWithTheirBytes) {
  const TemporaryFolder folder;
  const std::string numbers = npy_start("<f4", "(2,)") + std::string(8, '\0');
  write_file(folder / "a.npz", zip_archive({packed("x.npy", numbers), bomb("bomb.npy")}));
  DataConfig config = npz_config({folder / "a.npz"});
  for (const bool named_fields : {true, false}) {
    if (named_fields) config.fields = {named("x"), named("bomb")};
    const testing::FewAddresses few(std::size_t{512} << 20);
    try {
      open_data(config);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("a.npz: bomb: "), HasSubstr("2147483656 bytes in 2 arrays"),
                        HasSubstr("data.fields"), Not(HasSubstr("batch"))));
    }
    config.fields.clear();
  }
}

// Whole fields are checked in pieces, however large a sample is.
TEST(OpenData, ChecksOfLargeSamplesTakeLittleMemory) {
  if (!testing::counts_allocations()) GTEST_SKIP() << "sanitizers take memory of their own";
  const HostTensor maps(TensorType{DType::uint8, {64, 1024, 1024}});
  std::memset(const_cast<HostTensor&>(maps).data(), 1, maps.bytes());
  const auto source = make_array_source({{"x", maps}}, {field("x", {"int64"})});
  EXPECT_LT(peak_memory_of([&] {
              source->check_range(0, 2, nullptr);
              source->check_numbers(0, 0, 1, "0 or 1");
            }),
            std::size_t{48} << 20);  // a sample takes 8 MiB as int64
}

TEST(OpenData, HoldsAFractionOut) {
  const TemporaryFolder folder;
  std::vector<std::int64_t> rows(100);
  std::iota(rows.begin(), rows.end(), 0);
  write_npz(folder / "a.npz", {{"x", HostTensor::from<std::int64_t>({100}, rows)}});
  DataConfig config = npz_config({folder / "a.npz"});
  config.eval_fraction = 0.2;
  const auto values = [](const DataSource& source) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples())), result(all.size());
    std::iota(all.begin(), all.end(), 0);
    source.fill(0, all, nullptr, result.data());
    return result;
  };
  const DataSets sets = open_data(config), again = open_data(config);
  EXPECT_EQ(sets.eval->samples(), 20);
  std::vector<std::int64_t> both = values(*sets.train), eval = values(*sets.eval);
  EXPECT_EQ(eval, values(*again.eval));
  both.insert(both.end(), eval.begin(), eval.end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, rows);
  OpenOptions other;
  other.seed = 2;
  EXPECT_NE(eval, values(*open_data(config, other).eval));
}

}  // namespace
}  // namespace tandem
