// Array files: npy, npz, IDX and CIFAR, whole and broken.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/arrays/cifar.h"
#include "engine/formats/arrays/idx.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/gzip.h"
#include "engine/graph/error.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using testing::same_bytes;
using testing::TemporaryFolder;

template <class F>
std::string error_of_kind(F&& f, ErrorKind kind = ErrorKind::data) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "";
}

std::string npy(std::string dictionary, const std::string& data) {
  dictionary.resize((10 + dictionary.size() + 1 + 63) / 64 * 64 - 11, ' ');
  dictionary += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(dictionary.size() & 255);
  text += static_cast<char>(dictionary.size() >> 8);
  return text + dictionary + data;
}

TEST(Npy, RoundTripOfEveryType) {
  const TemporaryFolder folder;
  const HostTensor numbers = HostTensor::from<double>({2, 3}, {0, 1, 2, 3, 4, 5});
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    const HostTensor tensor = numbers.converted(dtype);
    if (dtype == DType::bfloat16 || is_float8(dtype)) {
      EXPECT_THROW(write_npy(folder / "x.npy", tensor), Error);
      continue;
    }
    write_npy(folder / "x.npy", tensor);
    EXPECT_EQ((file_size(folder / "x.npy") - tensor.bytes()) % 64, 0u);
    const HostTensor read = read_npy(folder / "x.npy");
    ASSERT_EQ(read.type(), tensor.type());
    EXPECT_TRUE(same_bytes(read, tensor)) << name_of(dtype);
  }
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0}, Shape{2, 0, 3}}) {
    const HostTensor tensor{TensorType{DType::float32, shape}};
    write_npy(folder / "x.npy", tensor);
    EXPECT_EQ(read_npy(folder / "x.npy").shape(), shape);
  }
}

TEST(Npy, HonoursFortranOrderAndByteOrder) {
  const TemporaryFolder folder;
  const std::string data("\0\1\0\2\0\3\0\4\0\5\0\6", 12);
  write_file(folder / "x.npy",
             npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", data));
  const HostTensor read = read_npy(folder / "x.npy");
  EXPECT_EQ(read.type(), (TensorType{DType::int16, {2, 3}}));
  EXPECT_EQ(read.integers(), (std::vector<std::int64_t>{1, 3, 5, 2, 4, 6}));
}

TEST(Npy, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  const auto says = [&](const std::string& content) {
    write_file(folder / "bad.npy", content);
    const std::string text = error_of_kind([&] { read_npy(folder / "bad.npy"); });
    EXPECT_NE(text.find("bad.npy"), std::string::npos) << text;
    return text;
  };
  const auto with = [](const std::string& descr, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }",
               std::string(8, 'x'));
  };
  EXPECT_NE(says("hello").find("not a .npy"), std::string::npos);
  EXPECT_NE(says(with("'|O'", "(1,)")).find("Python objects"), std::string::npos);
  EXPECT_NE(says(with("'<U8'", "(1,)")).find("arrays of texts are not read"), std::string::npos);
  EXPECT_NE(says(with("'|S3'", "(1,)")).find("np.unique(x"), std::string::npos);
  EXPECT_NE(says(with("'<c16'", "(1,)")).find("complex numbers are not read"), std::string::npos);
  EXPECT_NE(says(with("'<M8[s]'", "(1,)")).find("not supported"), std::string::npos);
  EXPECT_NE(says(with("[('a', '<f4')]", "(1,)")).find("structured"), std::string::npos);
  EXPECT_NE(says(with("'<f4'", "(3,)")).find("cut off"), std::string::npos);
  EXPECT_NE(says(with("'<f4'", "(1,)")).find("bytes follow"), std::string::npos);
  EXPECT_NE(says(with("'<f4'", "(4611686018427387904, 8)")).find("too large"), std::string::npos);
  EXPECT_NE(says(with("'<f4'", "(-1,)")).find("tuple of extents"), std::string::npos);
  EXPECT_NE(says(with("'<f4", "(2,)")).find("header"), std::string::npos);
  EXPECT_NE(says(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12)).find("too long"),
            std::string::npos);
}

TEST(Npz, RoundTripStoredAndDeflated) {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> arrays = {
      {"x", HostTensor::from<float>({2, 2}, {1, 2, 3, 4})},
      {"empty", HostTensor(TensorType{DType::int64, {0, 3}})},
      {"many", HostTensor(TensorType{DType::uint8, {100'000}})}};
  for (const bool compress : {false, true}) {
    const WrittenFile written = write_npz(folder / "a.npz", arrays, compress);
    EXPECT_EQ(written.sha256, hash_file(folder / "a.npz").sha256);
    EXPECT_TRUE(!compress || written.bytes < 3000) << written.bytes;
    const std::vector<NamedTensor> read = read_npz(folder / "a.npz");
    ASSERT_EQ(read.size(), arrays.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(read[i].name, arrays[i].name);
      ASSERT_EQ(read[i].tensor.type(), arrays[i].tensor.type());
      EXPECT_TRUE(same_bytes(read[i].tensor, arrays[i].tensor));
    }
  }
}

TEST(Npz, ReadsWhatNumPyWrote) {
  const std::string root = source_folder() + "/models/digits/";
  const std::vector<NamedTensor> arrays = read_npz(root + "digits_test.npz");
  ASSERT_EQ(arrays.size(), 2u);
  for (const NamedTensor& array : arrays) EXPECT_EQ(array.tensor.shape()[0], 360) << array.name;
}

// Whatever byte is changed or missing: an error that names the file, or other numbers; never a
// crash.
TEST(Npz, SurvivesEveryDamagedByte) {
  const TemporaryFolder folder;
  write_npz(folder / "good.npz",
            {{"x", HostTensor::from<float>({4}, {1, 2, 3, 4})},
             {"y", HostTensor::from<std::int8_t>({3}, {1, 2, 3})}},
            true);
  const std::string good = read_file(folder / "good.npz");
  int refused = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const bool cut : {false, true}) {
      std::string bad = cut ? good.substr(0, i) : good;
      if (!cut) bad[i] = static_cast<char>(bad[i] ^ 0x55);
      std::ofstream(folder / "bad.npz", std::ios::binary) << bad;  // no need to reach the disk
      try {
        read_npz(folder / "bad.npz");
      } catch (const Error& error) {
        EXPECT_EQ(error.diagnostics()[0].file, folder / "bad.npz");
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size()));
}

std::string idx(const std::string& type_and_rank, const std::string& extents, std::string data) {
  return std::string("\0\0", 2) + type_and_rank + extents + data;
}

TEST(Idx, ReadsPlainAndPackedInBigEndian) {
  const TemporaryFolder folder;
  const std::string extents("\0\0\0\2\0\0\0\1", 8);
  const std::string content = idx("\x0b\x02", extents, std::string("\1\0\xff\xfe", 4));
  write_file(folder / "x", content);
  const HostTensor read = read_idx(folder / "x");
  EXPECT_EQ(read.type(), (TensorType{DType::int16, {2, 1}}));
  EXPECT_EQ(read.integers(), (std::vector<std::int64_t>{256, -2}));

  const auto packed =
      deflate_raw(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  std::string gz("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  gz.append(packed.begin(), packed.end());
  const std::uint32_t crc = crc32_of(content.data(), content.size());
  const auto size = static_cast<std::uint32_t>(content.size());
  gz.append(reinterpret_cast<const char*>(&crc), 4).append(reinterpret_cast<const char*>(&size), 4);
  write_file(folder / "x.gz", gz);
  EXPECT_EQ(read_idx(folder / "x.gz").integers(), read.integers());
  write_file(folder / "two.gz", gz + gz);  // joined members: twice the bytes
  EXPECT_NE(error_of_kind([&] { read_idx(folder / "two.gz"); }).find("follow"), std::string::npos);
  const std::string zeros(512, '\0');
  write_file(folder / "padded.gz", gz + zeros);
  EXPECT_EQ(read_idx(folder / "padded.gz").integers(), read.integers());
  for (const std::string& more : {std::string("more"), zeros + "x", zeros + gz}) {
    write_file(folder / "more.gz", gz + more);
    EXPECT_NE(error_of_kind([&] { read_idx(folder / "more.gz"); }).find("broken gzip data"),
              std::string::npos);
  }
  write_file(folder / "cut.gz", gz.substr(0, gz.size() - 9));
  EXPECT_NE(error_of_kind([&] { read_idx(folder / "cut.gz"); }).find("ends too early"),
            std::string::npos);
}

TEST(Idx, NamesTheRowWhereAFileEnds) {
  const TemporaryFolder folder;
  write_file(folder / "x", idx("\x08\x02", std::string("\0\0\0\4\0\0\0\2", 8), "12345"));
  EXPECT_NE(error_of_kind([&] { read_idx(folder / "x"); }).find("row 2"), std::string::npos);
  write_file(folder / "x", "not idx");
  EXPECT_NE(error_of_kind([&] { read_idx(folder / "x"); }).find("not an IDX"), std::string::npos);
}

TEST(Cifar, ReadsBothKinds) {
  const TemporaryFolder folder;
  std::string ten;
  for (int row = 0; row < 3; ++row) {
    ten += static_cast<char>(row);
    ten += std::string(3072, static_cast<char>(10 * row));
  }
  write_file(folder / "ten.bin", ten);
  const auto arrays = read_cifar(folder / "ten.bin");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].tensor.shape(), (Shape{3, 3, 32, 32}));
  EXPECT_EQ(arrays[0].tensor.as<std::uint8_t>()[3072], 10);
  EXPECT_EQ(arrays[1].tensor.integers(), (std::vector<std::int64_t>{0, 1, 2}));

  write_file(folder / "hundred.bin", std::string("\3\x63") + std::string(3072, 'p'));
  const auto fine = read_cifar(folder / "hundred.bin");
  ASSERT_EQ(fine.size(), 3u);
  EXPECT_EQ(fine[1].tensor.integers(), std::vector<std::int64_t>{99});
  EXPECT_EQ(fine[2].tensor.integers(), std::vector<std::int64_t>{3});

  ten[3073] = 10;
  write_file(folder / "bad.bin", ten);
  EXPECT_NE(error_of_kind([&] { read_cifar(folder / "bad.bin"); }).find("bad.bin:2"),
            std::string::npos);
  write_file(folder / "cut.bin", ten.substr(1));
  EXPECT_NE(error_of_kind([&] { read_cifar(folder / "cut.bin"); }).find("cut off"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
