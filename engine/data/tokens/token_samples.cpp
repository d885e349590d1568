#include "engine/data/tokens/token_samples.h"

#include <algorithm>
#include <limits>

#include "engine/formats/parallel_jobs.h"

namespace tandem {
namespace {

constexpr std::int64_t scanned_at_a_time = 1 << 18;  // tokens
constexpr std::size_t most_bad = 5;

/// Findings from reading a piece of a sequence.
struct Scanned {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), greatest = -1;
  std::vector<std::int64_t> ends;  // positions after tokens that end a document
  std::vector<std::pair<std::int64_t, std::int64_t>> bad{};  // token, id
};

Scanned scan_piece(const TokenSequence& sequence, std::int64_t first, std::int64_t count,
                   const TokenWindows& windows, const TokenScan& scan) {
  thread_local std::vector<std::int64_t> ids;
  ids.resize(static_cast<std::size_t>(count));
  sequence.read(first, count, ids.data());
  Scanned found;
  const std::int64_t limit =
      scan.vocabulary > 0 ? scan.vocabulary : std::numeric_limits<std::int64_t>::max();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = ids[static_cast<std::size_t>(i)];
    found.least = std::min(found.least, id);
    found.greatest = std::max(found.greatest, id);
    if (!windows.cross_documents && id == windows.document_end) found.ends.push_back(first + i + 1);
    if (id >= limit && found.bad.size() < most_bad) found.bad.emplace_back(first + i, id);
  }
  return found;
}

void report_bad_ids(const TokenSequence& sequence, const Scanned& all, std::int64_t vocabulary,
                    std::vector<Diagnostic>& errors) {
  for (const auto& [token, id] : all.bad) {
    Diagnostic& d = errors.emplace_back();
    d.message = "this id is not in the vocabulary";
    if (const std::string place = sequence.place(token); !place.empty()) d.message += ": " + place;
    d.file = sequence.file();
    d.expected = "0 to " + std::to_string(vocabulary - 1);
    d.got = std::to_string(id);
    d.fix = "ids may be stored in another size: data.element = \"uint16\" or \"uint32\"";
  }
}

class TokenArray final : public RowMaker {
 public:
  using Part = void (TokenSamples::*)(std::int64_t, std::int64_t*) const;
  TokenArray(std::shared_ptr<const TokenSamples> samples, Part part)
      : samples_(std::move(samples)), part_(part) {}

  std::int64_t rows() const override { return samples_->samples(); }
  void make(std::int64_t index, void* to) const override {
    ((*samples_).*part_)(index, static_cast<std::int64_t*>(to));
  }
  const void* make_whole(std::int64_t, TensorType&) const override { return nullptr; }
  std::string file(std::int64_t index) const override { return samples_->file(index); }
  std::int64_t row_in_file(std::int64_t index) const override {
    return samples_->row_in_file(index);
  }

 private:
  std::shared_ptr<const TokenSamples> samples_;
  Part part_;
};

}  // namespace

std::int64_t windows_of_stream(std::int64_t tokens, const TokenWindows& windows) {
  const std::int64_t needed = windows.length + windows.shift;
  return tokens < needed ? 0 : (tokens - needed) / windows.step() + 1;
}

std::int64_t windows_of_document(std::int64_t tokens, const TokenWindows& windows) {
  const std::int64_t targets = tokens - windows.shift;
  if (targets <= 0) return 0;
  if (targets <= windows.length) return 1;
  const std::int64_t step = windows.step();
  const std::int64_t with_targets = (targets - 1) / step + 1;  // those that begin before one
  return std::min((targets - windows.length + step - 1) / step + 1, with_targets);
}

std::shared_ptr<const TokenSamples> TokenSamples::open(
    std::vector<std::unique_ptr<TokenSequence>> sequences, const TokenWindows& windows,
    const TokenScan& scan, std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  auto samples = std::make_shared<TokenSamples>();
  samples->windows_ = windows;
  samples->least_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t longest = 0;
  for (std::unique_ptr<TokenSequence>& sequence : sequences) {
    Part part;
    const std::int64_t tokens = sequence->tokens();
    longest = std::max(longest, tokens);
    Scanned all;
    part.starts.push_back(0);
    const auto scan_job = [&](std::int64_t job) {
      if (scan.check_stop) scan.check_stop();
      const std::int64_t first = job * scanned_at_a_time;
      return scan_piece(*sequence, first, std::min(scanned_at_a_time, tokens - first), windows,
                        scan);
    };
    ordered_jobs(scan.threads, (tokens + scanned_at_a_time - 1) / scanned_at_a_time, scan_job,
                 [&](std::int64_t, Scanned piece) {
                   all.least = std::min(all.least, piece.least);
                   all.greatest = std::max(all.greatest, piece.greatest);
                   part.starts.insert(part.starts.end(), piece.ends.begin(), piece.ends.end());
                   for (const auto& bad : piece.bad) {
                     if (all.bad.size() < most_bad) all.bad.push_back(bad);
                   }
                 });
    report_bad_ids(*sequence, all, scan.vocabulary, errors);
    samples->least_ = std::min(samples->least_, all.least);
    samples->greatest_ = std::max(samples->greatest_, all.greatest);
    if (part.starts.back() < tokens) part.starts.push_back(tokens);
    for (std::size_t i = 0; i + 1 < part.starts.size(); ++i) {
      const std::int64_t own = part.starts[i + 1] - part.starts[i];
      part.firsts.push_back(samples->samples_);
      const std::int64_t count = windows.cross_documents ? windows_of_stream(own, windows)
                                                         : windows_of_document(own, windows);
      samples->samples_ += count;
      samples->pads_ |=
          count > 0 && (count - 1) * windows.step() + windows.length + windows.shift > own;
    }
    part.end = samples->samples_;
    part.sequence = std::move(sequence);
    samples->parts_.push_back(std::move(part));
  }
  if (samples->samples_ == 0 && errors.size() == before) {
    Diagnostic& d = errors.emplace_back();
    d.message = "there are no samples: no file is as long as one";
    if (!samples->parts_.empty()) d.file = samples->parts_[0].sequence->file();
    d.expected = windows.cross_documents
                     ? std::to_string(windows.length + windows.shift) + " tokens"
                     : std::to_string(windows.shift + 1) + " tokens of a document";
    d.got = std::to_string(longest) + " in the longest file";
    const std::int64_t fits = longest - windows.shift;
    d.fix = fits > 0 && windows.cross_documents
                ? "data.length = " + std::to_string(fits) + " makes one sample of the longest file"
                : "data.length is the length of a sample";
  }
  return errors.size() == before ? samples : nullptr;
}

const TokenSamples::Part& TokenSamples::part_of(std::int64_t sample) const {
  return *std::upper_bound(parts_.begin(), parts_.end(), sample,
                           [](std::int64_t s, const Part& part) { return s < part.end; });
}

TokenSamples::Window TokenSamples::find(std::int64_t sample) const {
  const Part& part = part_of(sample);
  // Documents without a window begin with that of the next one, which is the last of them.
  const auto next = std::upper_bound(part.firsts.begin(), part.firsts.end(), sample);
  const auto document = static_cast<std::size_t>(next - part.firsts.begin()) - 1;
  const std::int64_t first =
      part.starts[document] + (sample - part.firsts[document]) * windows_.step();
  return {part.sequence.get(), first, part.starts[document + 1] - first};
}

void TokenSamples::tokens(std::int64_t sample, std::int64_t* to) const {
  const Window window = find(sample);
  const std::int64_t there = std::min(windows_.length, window.left);
  window.sequence->read(window.first, there, to);
  std::fill(to + there, to + windows_.length, windows_.pad);
}

void TokenSamples::targets(std::int64_t sample, std::int64_t* to) const {
  const Window window = find(sample);
  const std::int64_t there = std::min(windows_.length, window.left - windows_.shift);
  window.sequence->read(window.first + windows_.shift, there, to);
  std::fill(to + there, to + windows_.length, ignored_target);
}

void TokenSamples::mask(std::int64_t sample, std::int64_t* to) const {
  const std::int64_t there = std::min(windows_.length, find(sample).left - windows_.shift);
  std::fill(to, to + there, 1);
  std::fill(to + there, to + windows_.length, 0);
}

const std::string& TokenSamples::file(std::int64_t sample) const {
  return part_of(sample).sequence->file();
}

std::int64_t TokenSamples::row_in_file(std::int64_t sample) const {
  return sample - part_of(sample).firsts.at(0) + 1;
}

std::shared_ptr<const ArraySet> token_arrays(std::shared_ptr<const TokenSamples> samples,
                                             const ArrayNames& names) {
  auto set = std::make_shared<ArraySet>();
  const TensorType type{DType::int64, {samples->windows().length}};
  const auto add = [&](const char* name, TokenArray::Part part, double least, double greatest) {
    if (names && !names->contains(name)) {
      set->leave_out(name);
      return;
    }
    set->add(ArrayRows(name, type, std::make_shared<TokenArray>(samples, part))).range = {least,
                                                                                          greatest};
  };
  const auto least = static_cast<double>(samples->least());
  const auto greatest = static_cast<double>(samples->greatest());
  const auto pad = static_cast<double>(samples->windows().pad);
  const bool pads = samples->pads();
  add("tokens", &TokenSamples::tokens, pads ? std::min(least, pad) : least,
      pads ? std::max(greatest, pad) : greatest);
  add("targets", &TokenSamples::targets, pads ? static_cast<double>(ignored_target) : least,
      greatest);
  add("mask", &TokenSamples::mask, 0, 1);
  std::vector<Diagnostic> none;  // arrays of one length, with samples
  set->finish(none);
  return set;
}

}  // namespace tandem
