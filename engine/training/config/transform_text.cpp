// The functions of fields as they are written, "scale(1/255)": their names, and what each takes.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "engine/graph/selector.h"
#include "engine/training/config/config_check.h"

namespace tandem {
namespace {

struct Argument {
  std::string name;  // of name=value
  std::vector<double> numbers;
  bool is_list = false, is_text = false;
  std::string text;  // between quotes; else as the number is written
};

class CallParser {
 public:
  explicit CallParser(std::string_view text) : text_(text) {
    skip();
    text_.remove_prefix(at_);
    at_ = 0;
    while (text_.ends_with(' ')) text_.remove_suffix(1);
  }

  /// Of the whole call, without spaces around it.
  std::string text() const { return std::string(text_); }

  std::string name() {
    std::string word = identifier();
    if (word.empty()) throw std::invalid_argument("not a function");
    return word;
  }

  std::vector<Argument> arguments() {
    std::vector<Argument> result;
    if (!accept('(')) {
      finish();
      return result;
    }
    while (!accept(')')) {
      Argument argument;
      skip();
      const std::size_t before = at_;
      argument.name = identifier();
      if (!argument.name.empty() && !accept('=')) {
        throw std::invalid_argument("`" + argument.name + "` is not a number");
      }
      if (argument.name.empty()) at_ = before;
      skip();
      const std::size_t start = at_;
      if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
        argument.is_text = true;
        argument.text = quoted();
        argument.numbers.push_back(0);
      } else if (accept('[')) {
        argument.is_list = true;
        while (!accept(']')) {
          argument.numbers.push_back(number());
          if (accept(']')) break;
          expect(',');
        }
      } else {
        argument.numbers.push_back(number());
        argument.text = std::string(text_.substr(start, at_ - start));
      }
      result.push_back(std::move(argument));
      if (accept(')')) break;
      expect(',');
    }
    finish();
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw std::invalid_argument(std::string("a `") + c + "` is missing");
  }
  void finish() {
    skip();
    if (at_ < text_.size())
      throw std::invalid_argument("`" + std::string(text_.substr(at_)) + "` does not belong there");
  }
  std::string quoted() {
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) throw std::invalid_argument("a quote is not closed");
    std::string inside(text_.substr(at_, end - at_));
    at_ = end + 1;
    return inside;
  }
  std::string identifier() {
    skip();
    const std::size_t start = at_;
    const auto letter = [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
             (at_ > start && c >= '0' && c <= '9');
    };
    while (at_ < text_.size() && letter(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  double simple_number() {
    skip();
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      throw std::invalid_argument("the number " + std::string(begin, end) + " is out of range");
    if (error != std::errc() || !std::isfinite(value))
      throw std::invalid_argument("a number is missing");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  double number() {
    const double value = simple_number();
    const std::size_t end = at_;
    if (!accept('/')) {
      at_ = end;  // spaces are no part of the number
      return value;
    }
    const double divisor = simple_number();
    if (divisor == 0) throw std::invalid_argument("division by zero");
    return value / divisor;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::int64_t whole(double value, std::int64_t least, const char* what) {
  if (value != std::floor(value) || std::abs(value) > 1e15 || value < static_cast<double>(least)) {
    throw std::invalid_argument(std::string(what) + " is a whole number, at least " +
                                std::to_string(least));
  }
  return static_cast<std::int64_t>(value);
}

/// Of one call. What has a name is taken out; `count` then says what the rest has to be.
class Arguments {
 public:
  Arguments(std::string function, std::vector<Argument> all)
      : function_(std::move(function)), all_(std::move(all)) {}

  const std::string& function() const { return function_; }

  std::optional<double> take_number(std::string_view name) {
    const auto found = find(name);
    if (found == all_.end()) return std::nullopt;
    if (found->is_list || found->is_text)
      throw std::invalid_argument("`" + found->name + "` is one number");
    const double value = found->numbers[0];
    all_.erase(found);
    return value;
  }

  std::optional<std::string> take_text(std::string_view name) {
    const auto found = find(name);
    if (found == all_.end()) return std::nullopt;
    if (!found->is_text) throw std::invalid_argument("`" + found->name + "` is a text in quotes");
    std::string text = std::move(found->text);
    all_.erase(found);
    return text;
  }

  /// Refuses all but `least` to `most` arguments without a name.
  void count(std::size_t least, std::size_t most, const std::string& usage,
             bool takes_text = false) const {
    for (const Argument& argument : all_) {
      if (argument.is_text && argument.name.empty() && !takes_text)
        throw std::invalid_argument("a number is needed, not a text: write " + usage);
      if (!argument.name.empty())
        throw std::invalid_argument("unknown option `" + argument.name + "`: write " + usage);
    }
    if (all_.size() < least || all_.size() > most) throw std::invalid_argument("write " + usage);
  }

  std::size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  const Argument& operator[](std::size_t i) const { return all_[i]; }
  double number(std::size_t i) const {
    if (all_[i].is_list) throw std::invalid_argument("a number is needed, not a list");
    return all_[i].numbers[0];
  }

 private:
  std::vector<Argument>::iterator find(std::string_view name) {
    return std::find_if(all_.begin(), all_.end(),
                        [&](const Argument& a) { return a.name == name; });
  }

  std::string function_;
  std::vector<Argument> all_;
};

void read_nothing(Arguments& from, Transform&) { from.count(0, 0, from.function()); }

void read_scale(Arguments& from, Transform& to) {
  from.count(1, 1, "scale(1/255)");
  to.factor = from.number(0);
}

void read_normalize(Arguments& from, Transform& to) {
  from.count(2, 2, "normalize(mean, std), numbers or one list each");
  to.mean = from[0].numbers;
  to.std = from[1].numbers;
  if (to.mean.empty() || to.mean.size() != to.std.size()) {
    throw std::invalid_argument("mean and std have different lengths");
  }
  for (double s : to.std) {
    if (!(s > 0)) throw std::invalid_argument("std must be above 0");
  }
}

void read_reshape(Arguments& from, Transform& to) {
  from.count(1, 16, "reshape(3, 32, 32)");
  int open = 0;
  for (const Argument& argument : from) {
    for (double extent : argument.numbers) {
      to.shape.push_back(extent == -1 ? -1 : whole(extent, 1, "an extent"));
      open += extent == -1;
    }
  }
  if (open > 1) throw std::invalid_argument("only one extent can be -1");
}

void read_one_hot(Arguments& from, Transform& to) {
  from.count(1, 1, "one_hot(10)");
  to.classes = whole(from.number(0), 1, "the number of classes");
}

void read_size(Arguments& from, const char* usage, Transform& to) {
  from.count(1, 2, usage);
  to.height = whole(from.number(0), 1, "the height");
  to.width = whole(from.number(from.size() - 1), 1, "the width");
}

void read_resize(Arguments& from, Transform& to) {
  read_size(from, "resize(32) or resize(height, width)", to);
}

void read_random_crop(Arguments& from, Transform& to) {
  if (const auto padding = from.take_number("padding")) to.padding = whole(*padding, 0, "padding");
  read_size(from, "random_crop(32, padding=4)", to);
}

void read_bucketize(Arguments& from, Transform& to) {
  from.count(1, 10'000, "bucketize(1, 10, 100)");
  for (const Argument& argument : from) {
    to.bounds.insert(to.bounds.end(), argument.numbers.begin(), argument.numbers.end());
  }
  for (std::size_t i = 1; i < to.bounds.size(); ++i) {
    if (!(to.bounds[i - 1] < to.bounds[i])) throw std::invalid_argument("the bounds must rise");
  }
}

void read_missing(Arguments& from, Transform& to) {
  from.count(1, 1, "missing(-1) or missing('none')", true);
  if (from[0].is_list) throw std::invalid_argument("one value is needed, not a list");
  to.absent = from[0].text;
}

void read_split(Arguments& from, Transform& to) {
  if (const auto pad = from.take_number("pad")) to.pad = whole(*pad, 0, "pad");
  const auto most = from.take_number("max");
  if (!most) throw std::invalid_argument("write split('|', max=8)");
  to.most = whole(*most, 1, "max");
  if (to.most > 1 << 20) throw std::invalid_argument("max is at most 1048576");
  from.count(1, 1, "split('|', max=8)", true);
  if (!from[0].is_text || from[0].text.empty())
    throw std::invalid_argument("the separator is a text in quotes");
  to.separator = from[0].text;
}

void read_hash(Arguments& from, Transform& to) {
  from.count(1, 1, "hash(100000)");
  to.modulus = whole(from.number(0), 2, "the number of ids");
}

void read_vocabulary(Arguments& from, Transform& to) {
  if (const auto least = from.take_number("min_count"))
    to.min_count = whole(*least, 1, "min_count");
  if (const auto shared = from.take_text("name")) {
    to.vocabulary = *shared;
    if (shared->empty() || shared->find_first_of("/\\") != std::string::npos)
      throw std::invalid_argument("the name is part of a file's name");
    to.by_value = true;
  }
  if (const auto by = from.take_text("by")) {
    if (*by != "value" && *by != "column") throw std::invalid_argument("by is 'column' or 'value'");
    to.by_value = *by == "value";
  }
  from.count(0, 0, "vocabulary(min_count=10, name='ids')");
}

struct Function {
  std::string_view name;
  TransformKind kind;
  void (*read)(Arguments& from, Transform& to);
};

/// All functions but the names of element types, which stand for `cast`.
constexpr Function functions[] = {
    {"scale", TransformKind::scale, read_scale},
    {"normalize", TransformKind::normalize, read_normalize},
    {"flatten", TransformKind::flatten, read_nothing},
    {"reshape", TransformKind::reshape, read_reshape},
    {"one_hot", TransformKind::one_hot, read_one_hot},
    {"resize", TransformKind::resize, read_resize},
    {"random_crop", TransformKind::random_crop, read_random_crop},
    {"random_flip", TransformKind::random_flip, read_nothing},
    {"log1p", TransformKind::log1p, read_nothing},
    {"bucketize", TransformKind::bucketize, read_bucketize},
    {"missing", TransformKind::missing, read_missing},
    {"split", TransformKind::split, read_split},
    {"hash", TransformKind::hash, read_hash},
    {"vocabulary", TransformKind::vocabulary, read_vocabulary},
};

/// What numbers are cast to; files and fields hold no bfloat16.
constexpr DType cast_types[] = {DType::float32, DType::float64, DType::float16, DType::int8,
                                DType::int16,   DType::int32,   DType::int64,   DType::uint8,
                                DType::uint16,  DType::uint32,  DType::uint64,  DType::boolean};

[[noreturn]] void refuse_unknown(const std::string& name) {
  const std::vector<std::string_view> names = transform_names();
  std::vector<std::string> known(names.begin(), names.end());
  for (DType dtype : cast_types) known.emplace_back(name_of(dtype));
  const std::string near = nearest_name(name, known);
  throw std::invalid_argument("unknown function `" + name + "`" +
                              (near.empty() ? "" : ", did you mean `" + near + "`?"));
}

}  // namespace

std::vector<std::string_view> transform_names() {
  std::vector<std::string_view> names;
  for (const Function& function : functions) names.push_back(function.name);
  return names;
}

Transform parse_transform(std::string_view text) {
  CallParser parser(text);
  const std::string name = parser.name();
  Arguments arguments(name, parser.arguments());
  Transform result;
  result.text = parser.text();
  for (const Function& function : functions) {
    if (function.name != name) continue;
    result.kind = function.kind;
    function.read(arguments, result);
    return result;
  }
  for (DType dtype : cast_types) {
    if (name_of(dtype) != (name == "boolean" ? "bool" : name)) continue;
    result.kind = TransformKind::cast;
    result.dtype = dtype;
    read_nothing(arguments, result);
    return result;
  }
  refuse_unknown(name);
}

}  // namespace tandem
