// All files of a text table into arrays on disk, or only into counts: by several threads, and as if
// one had read file after file.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/row_encoder.h"
#include "engine/data/shown_problems.h"

namespace tandem {

struct EncodeFilesOptions {
  /// Arrays of file i go to PREFIXES[i].FIELD, FIELD being the number in the plan, and the line of
  /// each row as uint32 to PREFIXES[i].lines. Empty: nothing is written.
  std::vector<std::string> prefixes;
  /// By their number in the plan: fields hold ids. Null: fields hold numbers of
  /// `EncodedFiles::values`, and -1 where `split` fills up.
  const std::vector<Vocabulary>* vocabularies = nullptr;
  std::size_t problems = shown_problems;  // kept for each file
  /// Neither broken files nor bad rows end the reading. Else, what follows the first broken file is
  /// not read to its end; and where the configuration refuses bad rows, reading ends after the last
  /// problem that is kept, and with the first file that has a bad row.
  bool reads_all = false;
  int threads = 0;  // 0: as many as the machine has
  /// Plain text is dealt to the threads in blocks of that many bytes.
  std::uint64_t block_bytes = std::uint64_t{1} << 20;
  /// Is called with the number of bytes read, from any thread. What it throws ends the file, as if
  /// that were broken there.
  std::function<void(std::uint64_t)> on_read;
};

struct EncodedFiles {
  std::vector<EncodedFile> files;  // without values
  /// By file: why it is broken as a whole (gzip, header), or null. What was read of it counts.
  std::vector<std::exception_ptr> failures;
  /// By vocabulary, the values of all files. Which number a value has depends on the threads' pace,
  /// and values that only rows occurred in which were left out are there with a count of 0.
  std::vector<ValueCounts> values;
};

EncodedFiles encode_files(const DataConfig& config, const TablePlan& plan,
                          const std::vector<std::string>& paths, const EncodeFilesOptions& options);

/// The number of threads that `threads` of a configuration means.
int threads_for(int threads);

}  // namespace tandem
