#include "engine/data/chat/chat_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/data/chat/conversation.h"
#include "engine/data/shown_problems.h"
#include "engine/data/tokens/read_tokens.h"
#include "engine/formats/claim.h"
#include "engine/formats/count_text.h"
#include "engine/formats/delimited.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/formats/text_stream.h"

namespace tandem {

void ChatReader::read(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{8} << 20;  // what lines take that wait
  files_.push_back(path);
  samples_->begin_file(path);
  DelimitedReader reader(path, '\n', false);
  std::vector<Line> lines;
  std::size_t bytes = 0;
  while (reader.next()) {
    if (is_blank(reader.fields()[0])) continue;
    lines.push_back({reader.line(), std::string(reader.fields()[0])});
    bytes += lines.back().text.size();
    if (bytes < most_bytes) continue;
    encode(lines);
    lines.clear();
    bytes = 0;
  }
  encode(lines);
}

void ChatReader::encode(const std::vector<Line>& lines) {
  constexpr std::size_t lines_a_job = 64;
  ordered_jobs(
      options_.threads > 0 ? options_.threads : file_threads(),
      static_cast<std::int64_t>((lines.size() + lines_a_job - 1) / lines_a_job),
      [&](std::int64_t job) {
        check_token_stop(options_);
        ChatEncoder::Scratch scratch;
        std::vector<Encoded> encoded;
        const std::size_t begin = static_cast<std::size_t>(job) * lines_a_job;
        for (std::size_t i = begin; i < std::min(begin + lines_a_job, lines.size()); ++i)
          encoded.push_back(encode(lines[i], scratch));
        return encoded;
      },
      [&](std::int64_t, const std::vector<Encoded>& encoded) {
        for (const Encoded& line : encoded) take(line);
        if (samples_->bytes() <= claimed_) return;
        claimed_ = samples_->bytes();  // its next growth takes as much again
        claim_memory(claimed_, files_.back(), "",
                     std::to_string(samples_->counts().tokens) + " tokens so far");
      });
}

ChatReader::Encoded ChatReader::encode(const Line& line, ChatEncoder::Scratch& scratch) const {
  Encoded encoded{.line = line.number};
  try {
    encoded.problem = encoder_.encode(read_conversation(files_.back(), line.number, line.text),
                                      scratch, encoded.tokens);
  } catch (const Error& error) {
    encoded.problem = error.diagnostics().at(0);
  }
  if (!encoded.problem) check_length(encoded);
  if (encoded.problem) {
    encoded.problem->file = files_.back();
    encoded.problem->line = static_cast<int>(line.number);
  }
  return encoded;
}

/// Whether something of an answer is a target within a sample.
void ChatReader::check_length(Encoded& line) const {
  const std::size_t length = line.tokens.ids.size();
  const auto room = static_cast<std::size_t>(kind_.length);
  line.is_left_out = length > room && kind_.too_long == LongChat::skip;
  if (line.is_left_out) return;
  if (length > room && kind_.too_long == LongChat::error) {
    line.problem = Diagnostic{.message = "the conversation is longer than a sample",
                              .expected = fmt::format("at most {} tokens", room),
                              .got = std::to_string(length),
                              .fix = "data.length, or data.too_long = \"cut\" or \"skip\""};
    return;
  }
  std::size_t first = length;  // the first target; token 0 is none, since nothing comes before it
  for (const TextRange& answer : line.tokens.answers) {
    const std::size_t begin = std::max<std::size_t>(answer.begin, 1);
    if (begin < answer.end) first = std::min(first, begin);
  }
  if (first == length) {
    line.problem = Diagnostic{.message = "no token of an answer follows another token"};
  } else if (first >= room) {
    line.problem =
        Diagnostic{.message = "a sample is shorter than the prompt: none of the answer is left",
                   .expected = fmt::format("data.length above {}", first),
                   .got = fmt::format("{}; the conversation has {} tokens", room, length),
                   .fix = "data.length, or data.on_bad = \"skip\" leaves such lines out"};
  }
}

void ChatReader::take(const Encoded& line) {
  if (line.problem) {
    ++bad_;
    if (problems_.size() < shown_problems) problems_.push_back(*line.problem);
  } else if (line.is_left_out) {
    ++long_;
    longest_left_out_ = std::max<std::int64_t>(longest_left_out_, std::ssize(line.tokens.ids));
  } else {
    samples_->add(line.line, line.tokens);
  }
}

std::shared_ptr<const ChatSamples> ChatReader::finish(std::vector<Diagnostic>& errors,
                                                      std::vector<std::string>& warnings) {
  const std::size_t before = errors.size();
  if (kind_.on_bad == OnBad::error) {
    errors.insert(errors.end(), problems_.begin(), problems_.end());
    tell_others(errors, before, bad_, "lines");
  }
  if (errors.size() > before) return nullptr;
  samples_->arrange();
  samples_->counts().left_out = long_ + bad_;
  if (samples_->samples() == 0) {
    Diagnostic& d = errors.emplace_back();
    d.message = "there are no conversations";
    d.file = files_.at(0);
    if (long_ + bad_ > 0) d.got = count_text(long_ + bad_, "line") + ", all of them left out";
    if (!problems_.empty()) d.got += "; the first: " + to_string(problems_[0]);
    return nullptr;
  }
  tell(warnings);
  return samples_;
}

void ChatReader::tell(std::vector<std::string>& warnings) const {
  const TokenCounts& counts = samples_->counts();
  const std::int64_t all = counts.texts + bad_ + long_;
  const auto say = [&](std::int64_t count, const std::string& text) {
    if (count == 0) return;
    const bool is_warning = are_many_left_out(count, all);
    if (is_warning) warnings.push_back(text);
    if (options_.on_message)
      options_.on_message((is_warning ? "warning    " : "data       ") + shown_path(files_[0]) +
                          ": " + text);
  };
  const std::string first = problems_.empty() ? "" : to_string(problems_[0]);
  const std::string of_all = " of " + std::to_string(all) + " conversations";
  say(bad_, left_out_text(bad_, all, first, "lines"));
  say(long_,
      fmt::format("{}{} {} left out, longer than data.length = {} tokens; the longest "
                  "has {}",
                  long_, of_all, long_ == 1 ? "was" : "were", kind_.length, longest_left_out_));
  say(counts.cut_texts,
      fmt::format("{}{} {} cut to data.length = {} tokens: {:.3g} % of all tokens are left out; "
                  "the longest has {} ({})",
                  counts.cut_texts, of_all, counts.cut_texts == 1 ? "is" : "are", kind_.length,
                  100 * static_cast<double>(counts.cut_tokens) / static_cast<double>(counts.tokens),
                  counts.longest.at(0).tokens, shown_path(counts.longest[0].place)));
}

}  // namespace tandem
