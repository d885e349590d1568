// How much memory files take: good ones little more than their arrays, and no file more than the
// arrays that are requested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "engine/formats/arrays/cifar.h"
#include "engine/formats/arrays/idx.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/delimited.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/harness/few_addresses.h"
#include "tests/harness/peak_memory.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/packed_files.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t mib = std::size_t{1} << 20;

class FilesInMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!counts_allocations()) GTEST_SKIP() << "sanitizers take memory of their own";
  }
  std::string write(const std::string& name, const std::string& content) {
    write_file(folder_ / name, content);
    return folder_ / name;
  }
  const TemporaryFolder folder_;
};

/// Rows that mostly repeat: packed quickly, and to a part of their size.
std::string some_bytes(std::size_t bytes) {
  std::mt19937 random(3);
  std::string content(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i)
    content[i] = static_cast<char>(i % 64 == 0 ? random() % 10 : 1 + i % 7);
  return content;
}

HostTensor some_numbers(Shape shape) {
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  const std::string bytes = some_bytes(tensor.bytes());
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.data()));
  return tensor;
}

void expect_tenth_more(std::size_t peak, std::size_t arrays, const std::string& what) {
  EXPECT_GT(peak, arrays / 10 * 9) << what;                 // or it was not measured
  const std::size_t of_the_process = std::size_t{1} << 20;  // pages of its heap and its stacks
  EXPECT_LE(peak, arrays + arrays / 10 + of_the_process) << what;
  ::testing::Test::RecordProperty(what, std::to_string(peak) + " of " + std::to_string(arrays));
}

TEST_F(FilesInMemory, GoodFilesTakeATenthMoreThanTheirArrays) {
  const HostTensor tensor = some_numbers({128, 65536});  // 32 MiB
  const std::size_t bytes = tensor.bytes();
  write_npz(folder_ / "stored.npz", {{"x", tensor}});
  write_npz(folder_ / "packed.npz", {{"x", tensor}}, true);
  write_npy(folder_ / "x.npy", tensor);
  const std::string content(static_cast<const char*>(tensor.data()), bytes);
  const std::string columns = npy_start(
      "{'descr': '>f4', 'fortran_order': True, "
      "'shape': (128, 65536), }");
  write("columns.npy", columns + content);
  for (const std::string file : {"stored.npz", "packed.npz"}) {
    expect_tenth_more(peak_memory_of([&] { read_npz(folder_ / file); }), bytes, file);
  }
  for (const std::string file : {"x.npy", "columns.npy"}) {
    expect_tenth_more(peak_memory_of([&] { read_npy(folder_ / file); }), bytes, file);
  }
  const std::string idx = std::string("\0\0\x0d\2\0\0\0\x80\0\1\0\0", 12) + content;
  write("x.idx", idx);
  write("x.idx.gz", gzipped(idx));
  std::string bytes_idx = idx;
  bytes_idx.replace(2, 2, "\x08\2", 2);
  bytes_idx.replace(8, 4, std::string("\0\4\0\0", 4));
  write("bytes.gz", gzipped(bytes_idx));
  for (const std::string file : {"x.idx", "x.idx.gz", "bytes.gz"}) {
    expect_tenth_more(peak_memory_of([&] { read_idx(folder_ / file); }), bytes, file);
  }
}

TEST_F(FilesInMemory, CifarTakesATenthMoreThanItsArrays) {
  constexpr std::size_t rows = 10'000, record = 3073;
  std::string content = some_bytes(rows * record);
  for (std::size_t row = 0; row < rows; ++row) content[row * record] = static_cast<char>(row % 10);
  write("plain.bin", content);
  write("packed.gz", gzipped(content));
  for (const std::string file : {"plain.bin", "packed.gz"}) {
    const std::size_t peak = peak_memory_of([&] { read_cifar(folder_ / file); });
    expect_tenth_more(peak, rows * record, file);
  }
}

// The header says 4 bytes, the packed data has 2 GiB.
TEST_F(FilesInMemory, AnIdxFileIsUnpackedAsFarAsItsHeaderSays) {
  const std::string start("\0\0\x08\1\0\0\0\4", 8), block(mib, '\0');
  write("bomb.gz", gzip_file(deflated_repeats(start, block, 2048), 0, 0));
  const std::size_t peak = peak_memory_of([&] {
    EXPECT_THAT(error_of([&] { read_idx(folder_ / "bomb.gz"); }),
                AllOf(HasSubstr("bomb.gz"), HasSubstr("bytes follow the array")));
    if (HasFailure()) throw 1;
  });
  EXPECT_LT(peak, 8 * mib);  // far below 2 GiB; pages of the program's own code count, too
}

// The header says 2 GiB, and so few bytes cannot unpack to that.
TEST_F(FilesInMemory, ImpossibleSizesAreRefusedAtOnce) {
  const std::string idx("\0\0\x08\1\x80\0\0\0", 8);
  write("idx.gz", gzipped(idx));
  EXPECT_THAT(error_of([&] { read_idx(folder_ / "idx.gz"); }),
              AllOf(HasSubstr("cannot unpack to its array"), HasSubstr("2147483648 bytes")));
  // Extents that no memory can hold are refused, even next to an extent of 0.
  write("idx", std::string("\0\0\x08\4\0\0\0\0", 8) + std::string(12, '\xff'));
  EXPECT_THAT(error_of([&] { read_idx(folder_ / "idx"); }), HasSubstr("shape is too large"));
  write("x.npy", npy_start("<f4", "(0, 4611686018427387904, 4611686018427387904)"));
  EXPECT_THAT(error_of([&] { read_npy(folder_ / "x.npy"); }), HasSubstr("shape is too large"));
}

TEST_F(FilesInMemory, ArraysBeyondTheMachineAreRefusedWithTheirBytes) {
  const std::string block(mib, '\0');
  const std::string idx("\0\0\x08\1\x80\0\0\0", 8);
  write("idx.gz", gzip_file(deflated_repeats(idx, block, 2048), crc_of_repeats(idx, block, 2048),
                            idx.size() + 2048 * mib));
  std::string label_and_pixels(3073 * 512, '\0');
  write("cifar.gz",
        gzip_file(deflated_repeats("", label_and_pixels, 1400),
                  crc_of_repeats("", label_and_pixels, 1400), 1400 * label_and_pixels.size()));
  write("bomb.npz", zip_archive({bomb("x.npy")}));
  write("x.npy", npy_start("|u1", "(2147483648,)"));
  truncate_file(folder_ / "x.npy", file_size(folder_ / "x.npy") + 2048 * mib);  // with a hole
  struct Case {
    const char* file;
    void (*read)(const std::string&);
    const char* bytes;
  };
  const Case cases[] = {{"idx.gz", [](const std::string& p) { read_idx(p); }, "2147483648 bytes"},
                        {"cifar.gz", [](const std::string& p) { read_cifar(p); }, "bytes"},
                        {"bomb.npz", [](const std::string& p) { read_npz(p); }, "2147483648 bytes"},
                        {"x.npy", [](const std::string& p) { read_npy(p); }, "2147483648 bytes"}};
  for (const Case& c : cases) {
    const std::size_t peak = peak_memory_of([&] {
      const FewAddresses few(512 * mib);
      try {
        c.read(folder_ / c.file);
        ADD_FAILURE() << c.file << " was read";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::does_not_fit) << error.what();
        EXPECT_THAT(error.what(), AllOf(HasSubstr(c.file), HasSubstr(c.bytes),
                                        HasSubstr("ulimit -v"), Not(HasSubstr("batch"))));
      }
      if (HasFailure()) throw 1;
    });
    EXPECT_LT(peak, 8 * mib) << c.file;
  }
}

TEST_F(FilesInMemory, ARowIsNoListOfMillionsOfFields) {
  write("row.gz", gzipped(std::string(15 * mib, ',')));
  for (const bool quotes : {false, true}) {
    const std::size_t peak = peak_memory_of([&] {
      DelimitedReader reader(folder_ / "row.gz", ',', quotes);
      EXPECT_THAT(error_of([&] { reader.next(); }),
                  AllOf(HasSubstr("row.gz:1"), HasSubstr("too many fields"), HasSubstr("1048576")));
      if (HasFailure()) throw 1;
    });
    EXPECT_LT(peak, 160 * mib) << quotes;  // 32 MiB of it are text
  }
}

// Changed bytes of small files: an Error or other numbers, within 64 MiB.
TEST_F(FilesInMemory, ChangedBytesNeverTakeMuchMemory) {
  const HostTensor x = some_numbers({16, 8});
  write_npz(folder_ / "stored", {{"x", x}, {"y", x}});
  write_npz(folder_ / "packed", {{"x", x}, {"y", x}}, true);
  write_npy(folder_ / "npy", x);
  const std::string idx = std::string("\0\0\x08\2\0\0\0\4\0\0\0\4", 12) + some_bytes(16);
  write("idx", idx);
  write("idx.gz", gzipped(idx));
  write("cifar.gz", gzipped(std::string(2 * 3073, '\1')));
  struct Case {
    const char* file;
    void (*read)(const std::string&);
  };
  const Case cases[] = {{"stored", [](const std::string& p) { read_npz(p); }},
                        {"packed", [](const std::string& p) { read_npz(p); }},
                        {"npy", [](const std::string& p) { read_npy(p); }},
                        {"idx", [](const std::string& p) { read_idx(p); }},
                        {"idx.gz", [](const std::string& p) { read_idx(p); }},
                        {"cifar.gz", [](const std::string& p) { read_cifar(p); }}};
  std::mt19937 random(11);
  for (const Case& c : cases) {
    const std::string good = read_file(folder_ / c.file);
    const FewAddresses few(64 * mib);
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
      std::string bad = good;
      for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
        const std::size_t at = random() % bad.size();
        constexpr char extremes[] = {'\0', '\x7f', '\x80', '\xff'};
        bad[at] = random() % 2 == 0 ? static_cast<char>(random()) : extremes[random() % 4];
      }
      if (random() % 8 == 0) bad.resize(random() % bad.size());
      std::ofstream(folder_ / "bad", std::ios::binary) << bad;  // no need to reach the disk
      try {
        c.read(folder_ / "bad");
      } catch (const Error& error) {
        EXPECT_EQ(error.diagnostics()[0].file, folder_ / "bad") << error.what();
        EXPECT_THAT(error.what(), Not(HasSubstr("batch")));
        ++refused;
      }
    }
    EXPECT_GT(refused, 40) << c.file;
  }
}

}  // namespace
}  // namespace tandem
