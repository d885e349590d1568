// The small languages inside strings: durations, shuffles, file names with braces, data functions.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "engine/graph/selector.h"
#include "engine/training/config/config_check.h"

namespace tandem {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::int64_t Duration::steps(std::int64_t steps_per_epoch) const {
  if (unit == Unit::seconds) return 0;
  const double all = unit == Unit::steps ? value : value * static_cast<double>(steps_per_epoch);
  return std::max<std::int64_t>(1, std::llround(std::min(all, 9e18)));
}

std::string to_string(const Duration& duration) {
  constexpr std::string_view units[] = {"step", "epoch", "s"};
  std::string text = toml_number(duration.value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  text += " " + std::string(units[static_cast<int>(duration.unit)]);
  if (duration.unit != Duration::Unit::seconds && duration.value != 1) text += "s";
  return text;
}

std::optional<Duration> parse_duration(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
  const std::string_view unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit == "step" || unit == "steps") {
    if (value != std::floor(value) || value > 9e15) return std::nullopt;
    return Duration{value, Duration::Unit::steps};
  }
  if (unit == "epoch" || unit == "epochs") return Duration{value, Duration::Unit::epochs};
  constexpr std::pair<std::string_view, double> times[] = {
      {"s", 1},        {"sec", 1},      {"second", 1},  {"seconds", 1}, {"min", 60},
      {"minute", 60},  {"minutes", 60}, {"m", 60},      {"h", 3600},    {"hour", 3600},
      {"hours", 3600}, {"d", 86400},    {"day", 86400}, {"days", 86400}};
  for (const auto& [name, seconds] : times) {
    if (unit == name) return Duration{value * seconds, Duration::Unit::seconds};
  }
  return std::nullopt;
}

std::optional<ShuffleConfig> parse_shuffle(std::string_view text) {
  using Kind = ShuffleConfig::Kind;
  text = trim(text);
  if (text == "none") return ShuffleConfig{Kind::none};
  if (text == "full") return ShuffleConfig{Kind::full};
  if (!text.starts_with("buffer ")) return std::nullopt;
  const auto size = whole_number<std::int64_t>(trim(text.substr(7)));
  if (!size || *size < 1) return std::nullopt;
  return ShuffleConfig{Kind::buffer, *size};
}

std::optional<std::vector<std::string>> expand_braces(const std::string& text) {
  constexpr std::size_t limit = 100'000;
  const std::size_t open = text.find('{');
  if (open == std::string::npos) return std::vector<std::string>{text};
  const std::size_t close = text.find('}', open);
  if (close == std::string::npos) return std::nullopt;
  const std::string inside = text.substr(open + 1, close - open - 1);
  std::vector<std::string> choices;
  const std::size_t dots = inside.find("..");
  if (dots != std::string::npos) {
    const std::string first = inside.substr(0, dots), last = inside.substr(dots + 2);
    const auto low = whole_number<std::uint64_t>(first), high = whole_number<std::uint64_t>(last);
    if (!low || !high || *low > *high || *high - *low >= limit) return std::nullopt;
    for (std::uint64_t i = *low; i <= *high; ++i) {
      std::string number = std::to_string(i);
      if (first.size() > 1 && first[0] == '0' && number.size() < first.size()) {  // {000..146}
        number.insert(0, first.size() - number.size(), '0');
      }
      choices.push_back(std::move(number));
    }
  } else {
    std::size_t start = 0;
    while (true) {
      const std::size_t comma = inside.find(',', start);
      choices.push_back(inside.substr(start, comma - start));
      if (comma == std::string::npos) break;
      start = comma + 1;
    }
  }
  const auto rests = expand_braces(text.substr(close + 1));
  if (!rests || choices.size() * rests->size() > limit) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string& choice : choices) {
    for (const std::string& rest : *rests) names.push_back(text.substr(0, open) + choice + rest);
  }
  return names;
}

namespace {

struct Argument {
  std::string name;  // of name=value
  std::vector<double> numbers;
  bool is_list = false, is_text = false;
  std::string text;  // between quotes; else as the number is written
};

class CallParser {
 public:
  explicit CallParser(std::string_view text) : text_(text) {}

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
        argument.text = std::string(trim(text_.substr(start, at_ - start)));
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
    if (error != std::errc() || !std::isfinite(value))
      throw std::invalid_argument("a number is missing");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  double number() {
    double value = simple_number();
    if (accept('/')) {
      const double divisor = simple_number();
      if (divisor == 0) throw std::invalid_argument("division by zero");
      value /= divisor;
    }
    return value;
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

const std::vector<std::string>& known_functions() {
  static const std::vector<std::string> names = {
      "scale",       "normalize", "flatten", "reshape", "one_hot", "resize", "random_crop",
      "random_flip", "float32",   "float64", "float16", "int8",    "int16",  "int32",
      "int64",       "uint8",     "uint16",  "uint32",  "uint64",  "bool",   "log1p",
      "bucketize",   "missing",   "split",   "hash",    "vocabulary"};
  return names;
}

}  // namespace

Transform parse_transform(std::string_view text) {
  CallParser parser(text);
  const std::string name = parser.name();
  std::vector<Argument> arguments = parser.arguments();
  Transform result;
  result.text = std::string(trim(text));

  const auto take_named = [&](std::string_view wanted) -> std::optional<double> {
    for (auto it = arguments.begin(); it != arguments.end(); ++it) {
      if (it->name != wanted) continue;
      if (it->is_list || it->is_text)
        throw std::invalid_argument("`" + it->name + "` is one number");
      const double value = it->numbers[0];
      arguments.erase(it);
      return value;
    }
    return std::nullopt;
  };
  const auto take_text = [&](std::string_view wanted) -> std::optional<std::string> {
    for (auto it = arguments.begin(); it != arguments.end(); ++it) {
      if (it->name != wanted) continue;
      if (!it->is_text) throw std::invalid_argument("`" + it->name + "` is a text in quotes");
      std::string text = std::move(it->text);
      arguments.erase(it);
      return text;
    }
    return std::nullopt;
  };
  const auto count = [&](std::size_t least, std::size_t most, const char* usage,
                         bool takes_text = false) {
    for (const Argument& argument : arguments) {
      if (argument.is_text && argument.name.empty() && !takes_text)
        throw std::invalid_argument(std::string("a number is needed, not a text: write ") + usage);
      if (!argument.name.empty())
        throw std::invalid_argument("unknown option `" + argument.name + "`: write " + usage);
    }
    if (arguments.size() < least || arguments.size() > most)
      throw std::invalid_argument(std::string("write ") + usage);
  };
  const auto single = [&](std::size_t i) {
    if (arguments[i].is_list) throw std::invalid_argument("a number is needed, not a list");
    return arguments[i].numbers[0];
  };

  if (name == "scale") {
    count(1, 1, "scale(1/255)");
    result.kind = TransformKind::scale;
    result.factor = single(0);
  } else if (name == "normalize") {
    count(2, 2, "normalize(mean, std), numbers or one list each");
    result.kind = TransformKind::normalize;
    result.mean = arguments[0].numbers;
    result.std = arguments[1].numbers;
    if (result.mean.empty() || result.mean.size() != result.std.size()) {
      throw std::invalid_argument("mean and std have different lengths");
    }
    for (double s : result.std) {
      if (!(s > 0)) throw std::invalid_argument("std must be above 0");
    }
  } else if (name == "flatten") {
    count(0, 0, "flatten");
    result.kind = TransformKind::flatten;
  } else if (name == "reshape") {
    count(1, 16, "reshape(3, 32, 32)");
    result.kind = TransformKind::reshape;
    int open = 0;
    for (const Argument& argument : arguments) {
      for (double extent : argument.numbers) {
        result.shape.push_back(extent == -1 ? -1 : whole(extent, 1, "an extent"));
        open += extent == -1;
      }
    }
    if (open > 1) throw std::invalid_argument("only one extent can be -1");
  } else if (name == "one_hot") {
    count(1, 1, "one_hot(10)");
    result.kind = TransformKind::one_hot;
    result.classes = whole(single(0), 1, "the number of classes");
  } else if (name == "resize") {
    count(1, 2, "resize(32) or resize(height, width)");
    result.kind = TransformKind::resize;
    result.height = whole(single(0), 1, "the height");
    result.width = whole(single(arguments.size() - 1), 1, "the width");
  } else if (name == "random_crop") {
    result.kind = TransformKind::random_crop;
    if (const auto padding = take_named("padding")) result.padding = whole(*padding, 0, "padding");
    count(1, 2, "random_crop(32, padding=4)");
    result.height = whole(single(0), 1, "the height");
    result.width = whole(single(arguments.size() - 1), 1, "the width");
  } else if (name == "random_flip") {
    count(0, 0, "random_flip");
    result.kind = TransformKind::random_flip;
  } else if (const auto dtype = dtype_from_name(name == "boolean" ? "bool" : name);
             dtype && *dtype != DType::bfloat16) {
    count(0, 0, name.c_str());
    result.kind = TransformKind::cast;
    result.dtype = *dtype;
  } else if (name == "log1p") {
    count(0, 0, "log1p");
    result.kind = TransformKind::log1p;
  } else if (name == "bucketize") {
    count(1, 10'000, "bucketize(1, 10, 100)");
    result.kind = TransformKind::bucketize;
    for (const Argument& argument : arguments) {
      result.bounds.insert(result.bounds.end(), argument.numbers.begin(), argument.numbers.end());
    }
    for (std::size_t i = 1; i < result.bounds.size(); ++i) {
      if (!(result.bounds[i - 1] < result.bounds[i]))
        throw std::invalid_argument("the bounds must rise");
    }
  } else if (name == "missing") {
    count(1, 1, "missing(-1) or missing('none')", true);
    if (arguments[0].is_list) throw std::invalid_argument("one value is needed, not a list");
    result.kind = TransformKind::missing;
    result.word = arguments[0].text;
  } else if (name == "split") {
    result.kind = TransformKind::split;
    if (const auto pad = take_named("pad")) result.pad = whole(*pad, 0, "pad");
    const auto most = take_named("max");
    if (!most) throw std::invalid_argument("write split('|', max=8)");
    result.count = whole(*most, 1, "max");
    if (result.count > 1 << 20) throw std::invalid_argument("max is at most 1048576");
    count(1, 1, "split('|', max=8)", true);
    if (!arguments[0].is_text || arguments[0].text.empty())
      throw std::invalid_argument("the separator is a text in quotes");
    result.word = arguments[0].text;
  } else if (name == "hash") {
    count(1, 1, "hash(100000)");
    result.kind = TransformKind::hash;
    result.count = whole(single(0), 2, "the number of ids");
  } else if (name == "vocabulary") {
    result.kind = TransformKind::vocabulary;
    result.count = 1;
    if (const auto least = take_named("min_count")) result.count = whole(*least, 1, "min_count");
    if (const auto shared = take_text("name")) {
      result.word = *shared;
      if (shared->empty() || shared->find_first_of("/\\") != std::string::npos)
        throw std::invalid_argument("the name is part of a file's name");
      result.by_value = true;
    }
    if (const auto by = take_text("by")) {
      if (*by != "value" && *by != "column")
        throw std::invalid_argument("by is 'column' or 'value'");
      result.by_value = *by == "value";
    }
    count(0, 0, "vocabulary(min_count=10, name='ids')");
  } else {
    const std::string near = nearest_name(name, known_functions());
    throw std::invalid_argument("unknown function `" + name + "`" +
                                (near.empty() ? "" : ", did you mean `" + near + "`?"));
  }
  return result;
}

}  // namespace tandem
