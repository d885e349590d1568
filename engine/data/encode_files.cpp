// A file of plain text is cut into blocks of equal size; a row belongs to the block that it starts
// in. Threads take the blocks in order, and cannot know where the rows before theirs end: a thread
// begins at the first line that starts in its block, and hands its rows on once the block before
// has ended. Where that was in the middle of a line (quotes enclose line ends), it reads its block
// again from there.
#include "engine/data/encode_files.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/data/table_file.h"
#include "engine/formats/files.h"
#include "engine/formats/parallel_jobs.h"

namespace tandem {
namespace {

constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t no_file = std::numeric_limits<std::size_t>::max();

/// The arrays of one file, appended to as rows come.
class ArrayWriter {
 public:
  ArrayWriter(const TablePlan& plan, const std::string& prefix) {
    for (std::size_t f = 0; f < plan.fields.size(); ++f) {
      fields_.push_back(std::make_unique<OutputFile>(prefix + "." + std::to_string(f)));
    }
    lines_ = std::make_unique<OutputFile>(prefix + ".lines");
  }
  void write(const RowEncoder& rows, const std::vector<std::uint32_t>& lines) {
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      fields_[f]->write(rows.field(f), rows.rows() * rows.row_bytes(f));
    }
    lines_->write(lines.data(), lines.size() * sizeof(std::uint32_t));
  }
  void finish() {
    for (const auto& file : fields_) close(*file);
    close(*lines_);
  }

 private:
  static void close(OutputFile& file) {
    file.sync();
    file.close();
  }
  std::vector<std::unique_ptr<OutputFile>> fields_;
  std::unique_ptr<OutputFile> lines_;
};

/// A file that is being read. Its blocks end one after the other: the members below `over` belong
/// to the thread that has the block whose turn it is.
class FileInBlocks {
 public:
  FileInBlocks(std::size_t file, std::string source, const TablePlan& plan)
      : number(file), path(std::move(source)) {
    for (const TableField& field : plan.fields) result.fields.emplace_back(field.columns.size());
  }

  bool is_turn_of(std::int64_t block) {
    const std::lock_guard lock(mutex_);
    return turn_ == block;
  }
  /// False where the file is over.
  bool wait_for_turn_of(std::int64_t block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == block || over; });
    return !over;
  }
  void pass_turn() {
    {
      const std::lock_guard lock(mutex_);
      ++turn_;
    }
    changed_.notify_all();
  }
  /// No more of it is read.
  void end(std::exception_ptr why = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      over = true;
      if (why) failure = std::move(why);
    }
    changed_.notify_all();
  }

  const std::size_t number;
  const std::string path;
  char separator = ',';                // found in the first block, used for all
  std::int64_t blocks = 1, dealt = 0;  // guarded by the mutex of all files
  std::exception_ptr failure;
  std::atomic<bool> over = false;

  std::uint64_t position = 0;  // where the next row starts,
  std::int64_t line = 1;       // on which line,
  std::uint64_t told = 0;      // and how much of the file was reported as read
  std::unique_ptr<ArrayWriter> arrays;
  EncodedFile result;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t turn_ = 0;  // a block; guarded by mutex_
};

struct Block {
  FileInBlocks* file;
  std::int64_t number;
};

/// What a thread reads with: rows that it has not handed on, and all values that it ever saw under
/// numbers of its own.
struct Worker {
  Worker(const TablePlan& plan, std::size_t capacity, const EncodeFilesOptions& options)
      : encoder(plan, capacity, options.vocabularies, piece), numbers(plan.vocabularies.size()) {}

  void clear() {
    encoder.clear();
    piece.rows = piece.bad = 0;
    piece.problems.clear();
    for (auto& field : piece.fields) std::fill(field.begin(), field.end(), ColumnStatistics{});
  }

  EncodedFile piece;
  RowEncoder encoder;
  std::vector<std::vector<std::int32_t>> numbers;  // by vocabulary: those of all threads
  std::vector<std::uint32_t> lines;                // line numbers of the rows
};

/// The files, dealt to threads block by block.
class Reading {
 public:
  Reading(const DataConfig& config, const TablePlan& plan, const std::vector<std::string>& paths,
          const EncodeFilesOptions& options)
      : config_(config),
        plan_(plan),
        options_(options),
        stops_(config.table()->on_bad == OnBad::error && !options.reads_all),
        values_(plan.vocabularies.size()) {
    for (const std::string& path : paths) {
      files_.push_back(std::make_unique<FileInBlocks>(files_.size(), path, plan));
      largest_ = std::max(largest_, size_of_file(path));
    }
  }

  EncodedFiles run() {
    const int threads = threads_for(options_.threads);
    const std::uint64_t most_blocks = files_.size() * (largest_ / options_.block_bytes + 1);
    const std::uint64_t workers = std::min(most_blocks, static_cast<std::uint64_t>(threads));
    parallel_jobs(threads, static_cast<std::int64_t>(workers), [&](std::int64_t) { work(); });
    EncodedFiles all;
    for (const auto& file : files_) {
      all.files.push_back(std::move(file->result));
      all.failures.push_back(file->failure);
    }
    all.values = std::move(values_);
    return all;
  }

 private:
  void work();
  std::optional<Block> next_block(FileInBlocks* own);
  std::int64_t blocks_of(const std::string& path) const;
  std::size_t rows_at_a_time() const;
  void read(const Block& block, Worker& worker);
  bool fill(TableFile& rows, Worker& worker) const;
  void hand_on(FileInBlocks& file, DelimitedReader& reader, std::int64_t lines_before,
               Worker& worker);
  void number_values(Worker& worker);
  void take_back(Worker& worker) const;
  template <class F>
  void for_numbers(Worker& worker, F f) const;
  void end_behind(std::size_t file);

  /// 0 where it cannot be known.
  static std::uint64_t size_of_file(const std::string& path) {
    try {
      return file_size(path);
    } catch (const Error&) {
      return 0;  // reading it says why
    }
  }

  const DataConfig& config_;
  const TablePlan& plan_;
  const EncodeFilesOptions& options_;
  const bool stops_;  // whether bad rows end the reading
  std::uint64_t largest_ = 0;
  std::vector<std::unique_ptr<FileInBlocks>> files_;
  std::mutex dealing_;
  std::size_t begun_ = 0;                   // files; guarded by dealing_
  std::atomic<std::size_t> last_{no_file};  // index of the last file that is still read
  std::mutex numbering_;
  std::vector<ValueCounts> values_;  // guarded by numbering_
};

std::int64_t Reading::blocks_of(const std::string& path) const {
  const std::uint64_t bytes = size_of_file(path);
  if (bytes <= options_.block_bytes) return 1;
  try {
    if (TextStream(path).packed()) return 1;
  } catch (const Error&) {
    return 1;
  }
  return static_cast<std::int64_t>((bytes - 1) / options_.block_bytes + 1);
}

/// The rows of a whole block, unless they take too much memory.
std::size_t Reading::rows_at_a_time() const {
  constexpr std::size_t most_bytes = std::size_t{16} << 20, least_rows = 4096;
  std::size_t row_bytes = sizeof(std::uint32_t);
  for (const TableField& field : plan_.fields) row_bytes += field.stored.bytes();
  const std::size_t of_a_block = std::min(options_.block_bytes, largest_) / 2 + 1;
  return std::clamp<std::size_t>(most_bytes / row_bytes, 1, std::max(of_a_block, least_rows));
}

/// The next block of the file that the thread is reading; else the first one of a file that no
/// thread is reading; else one of any file.
std::optional<Block> Reading::next_block(FileInBlocks* own) {
  const std::lock_guard lock(dealing_);
  const auto deal = [&](FileInBlocks& file) -> std::optional<Block> {
    if (file.dealt == file.blocks || file.over || file.number > last_) return std::nullopt;
    return Block{&file, file.dealt++};
  };
  if (own != nullptr) {
    if (const auto block = deal(*own)) return block;
  }
  if (begun_ < files_.size() && begun_ <= last_) {
    FileInBlocks& file = *files_[begun_++];
    file.blocks = blocks_of(file.path);
    if (file.blocks > 1) file.separator = separator_of(config_, file.path);
    return deal(file);
  }
  for (std::size_t i = 0; i < begun_; ++i) {
    if (const auto block = deal(*files_[i])) return block;
  }
  return std::nullopt;
}

void Reading::end_behind(std::size_t file) {
  std::size_t last = last_;
  while (file < last && !last_.compare_exchange_weak(last, file)) {
  }
}

/// What was thrown; what takes too much memory does so because of the file.
std::exception_ptr with_file(std::exception_ptr failure, const std::string& path) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit) return failure;
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& d : problems) {
      if (d.file.empty()) d.file = shown_path(path);
    }
    return std::make_exception_ptr(Error(error.kind(), std::move(problems)));
  } catch (...) {
    return failure;
  }
}

void Reading::work() {
  std::unique_ptr<Worker> worker;
  FileInBlocks* own = nullptr;
  while (const std::optional<Block> block = next_block(own)) {
    own = block->file;
    try {
      if (!worker) worker = std::make_unique<Worker>(plan_, rows_at_a_time(), options_);
      read(*block, *worker);
    } catch (...) {
      own->end(with_file(std::current_exception(), own->path));
      if (!options_.reads_all) end_behind(own->number);
    }
  }
  if (!worker) return;
  const std::lock_guard lock(numbering_);
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const ValueCounts& seen = worker->piece.values[v];
    const std::vector<std::int32_t>& numbers = worker->numbers[v];
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      values_[v].count(numbers[n], seen.times(static_cast<std::int64_t>(n)));
    }
  }
}

/// True where there may be more rows, but no room for them.
bool Reading::fill(TableFile& rows, Worker& worker) const {
  EncodedFile& piece = worker.piece;
  while (!stops_ || piece.problems.size() < options_.problems) {
    if (worker.encoder.full()) return true;
    if (!rows.next()) return false;
    std::optional<Diagnostic> problem = rows.take(worker.encoder);
    if (!problem) continue;
    ++piece.bad;
    if (piece.problems.size() < options_.problems) piece.problems.push_back(*std::move(problem));
  }
  return false;
}

void Reading::read(const Block& block, Worker& worker) {
  FileInBlocks& file = *block.file;
  const std::uint64_t begin = static_cast<std::uint64_t>(block.number) * options_.block_bytes;
  const std::uint64_t end = block.number + 1 == file.blocks ? no_end : begin + options_.block_bytes;
  std::unique_ptr<TableFile> rows;
  bool more = false;
  std::exception_ptr failure;
  const auto try_to_fill = [&] {
    try {
      more = fill(*rows, worker);
    } catch (...) {
      more = false;
      failure = std::current_exception();
    }
  };
  worker.clear();
  if (!file.is_turn_of(block.number)) {
    std::uint64_t from = no_end;
    try {
      rows = std::make_unique<TableFile>(config_, plan_, file.path, file.separator, begin - 1, 1);
      rows->reader().end_at(end);
      if (rows->reader().skip_line()) {
        from = rows->reader().position();
        try_to_fill();
      }
    } catch (const Error&) {
      from = no_end;
    }
    const bool is_ours = file.wait_for_turn_of(block.number);
    // Failures are met again, with the right line.
    if (!is_ours || from != file.position || failure ||
        file.line + rows->line() > std::numeric_limits<int>::max()) {
      take_back(worker);
      worker.clear();
      rows.reset();
      failure = nullptr;
    }
    if (!is_ours) return;
  }
  if (file.number > last_) return file.end();
  if (file.position < end) {
    std::int64_t lines_before = file.line - 1;
    if (!rows) {
      lines_before = 0;
      if (block.number == 0) {
        rows = std::make_unique<TableFile>(config_, plan_, file.path);
        if (!options_.prefixes.empty()) {
          file.arrays = std::make_unique<ArrayWriter>(plan_, options_.prefixes[file.number]);
        }
      } else {
        rows = std::make_unique<TableFile>(config_, plan_, file.path, file.separator, file.position,
                                           file.line);
      }
      rows->reader().end_at(end);
      try_to_fill();
    }
    while (true) {
      hand_on(file, rows->reader(), lines_before, worker);
      if (failure) std::rethrow_exception(failure);
      if (file.over) return;
      if (!more) break;
      if (file.number > last_) return file.end();
      worker.clear();
      try_to_fill();
    }
    file.position = rows->reader().position();
    file.line = lines_before + rows->reader().next_line();
  }
  if (block.number + 1 == file.blocks && file.arrays) {
    file.arrays->finish();
    file.arrays.reset();
  }
  file.pass_turn();
}

void Reading::hand_on(FileInBlocks& file, DelimitedReader& reader, std::int64_t lines_before,
                      Worker& worker) {
  EncodedFile& piece = worker.piece;
  EncodedFile& to = file.result;
  for (Diagnostic& problem : piece.problems) {
    if (to.problems.size() == options_.problems) break;
    problem.line += static_cast<int>(lines_before);
    to.problems.push_back(std::move(problem));
  }
  to.bad += piece.bad;
  if (stops_ && to.bad > 0) {
    end_behind(file.number);
    if (to.problems.size() == options_.problems) return file.end();
  }
  if (options_.vocabularies == nullptr) number_values(worker);
  if (file.arrays) {
    worker.lines.clear();
    for (const std::uint32_t line : worker.encoder.lines()) {
      worker.lines.push_back(line + static_cast<std::uint32_t>(lines_before));
    }
    file.arrays->write(worker.encoder, worker.lines);
  }
  to.rows += piece.rows;
  for (std::size_t f = 0; f < to.fields.size(); ++f) {
    for (std::size_t c = 0; c < to.fields[f].size(); ++c) to.fields[f][c].add(piece.fields[f][c]);
  }
  const std::uint64_t now = reader.packed() ? reader.taken() : reader.position();
  if (options_.on_read) options_.on_read(now - file.told);
  file.told = now;
}

/// f(vocabulary, number, whether it counts) for the thread's numbers in the rows that were taken; f
/// may change them.
template <class F>
void Reading::for_numbers(Worker& worker, F f) const {
  for (std::size_t i = 0; i < plan_.fields.size(); ++i) {
    const TableField& field = plan_.fields[i];
    if (!field.vocabulary) continue;
    auto* number = reinterpret_cast<std::int32_t*>(worker.encoder.field(i));
    const auto rows = static_cast<std::int64_t>(worker.encoder.rows());
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const bool counts : field.counts) {
        for (std::int64_t k = 0; k < field.values_of_a_cell(); ++k, ++number) {
          if (*number >= 0) f(*field.vocabulary, *number, counts);
        }
      }
    }
  }
}

/// The thread's numbers become those of all threads.
void Reading::number_values(Worker& worker) {
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const ValueCounts& seen = worker.piece.values[v];
    std::vector<std::int32_t>& numbers = worker.numbers[v];
    auto n = static_cast<std::int64_t>(numbers.size());
    if (n == seen.size()) continue;
    const std::lock_guard lock(numbering_);
    for (; n < seen.size(); ++n) {
      numbers.push_back(values_[v].find_or_add(seen.column(n), seen.value(n)));
    }
  }
  if (options_.prefixes.empty()) return;
  for_numbers(worker, [&](std::size_t vocabulary, std::int32_t& number, bool) {
    number = worker.numbers[vocabulary][static_cast<std::size_t>(number)];
  });
}

/// Removes the counts of rows that turn out not to be rows.
void Reading::take_back(Worker& worker) const {
  if (options_.vocabularies != nullptr) return;
  for_numbers(worker, [&](std::size_t vocabulary, std::int32_t number, bool counts) {
    if (counts) worker.piece.values[vocabulary].count(number, -1);
  });
}

}  // namespace

int threads_for(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

EncodedFiles encode_files(const DataConfig& config, const TablePlan& plan,
                          const std::vector<std::string>& paths,
                          const EncodeFilesOptions& options) {
  return Reading(config, plan, paths, options).run();
}

}  // namespace tandem
