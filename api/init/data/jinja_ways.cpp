#include "api/init/data/jinja_ways.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace tandem::api {
namespace {

using Words = std::span<const JinjaWord>;
constexpr std::size_t most_ways = 512;

/// Parts that are not known, or do not close; too many ways.
struct Unreadable {};

const std::set<std::string> usual_roles = {"system", "user", "assistant"};

bool is_string(const JinjaWord& word) { return word.kind == JinjaWord::Kind::string; }

/// A name, or a key: `message.role` and `message['role']` are the same.
bool names(const JinjaWord& word, std::string_view what) {
  return word.kind != JinjaWord::Kind::number && word.text == what;
}
bool any_names(Words words, std::string_view what) {
  return std::any_of(words.begin(), words.end(),
                     [&](const JinjaWord& word) { return names(word, what); });
}
bool has(Words words, std::string_view what) {
  return std::any_of(words.begin(), words.end(),
                     [&](const JinjaWord& word) { return word.is(what); });
}
bool has_call(Words words, std::string_view name) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].is(name) && words[i + 1].is("(")) return true;
  }
  return false;
}
bool is_of_tools(const JinjaWord& word) {
  return (word.kind == JinjaWord::Kind::name || is_string(word)) &&
         word.text.find("tool") != std::string::npos && word.text.find(' ') == std::string::npos;
}

/// The place of a word outside of brackets; the size: nowhere.
std::size_t find_outside(Words words, std::string_view what) {
  int open = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].is("(") || words[i].is("[") || words[i].is("{")) ++open;
    if (words[i].is(")") || words[i].is("]") || words[i].is("}")) --open;
    if (open == 0 && words[i].is(what)) return i;
  }
  return words.size();
}

Words without_brackets(Words words) {
  while (words.size() > 2 && words.front().is("(") && find_outside(words, ")") == words.size() - 1)
    words = words.subspan(1, words.size() - 2);
  return words;
}

/// What a condition says about the way behind it.
struct Meaning {
  enum class Kind : std::uint8_t { open, never, always };
  Kind kind = Kind::open;
  std::optional<std::set<std::string>> roles = std::nullopt;        // these; nullopt: any
  std::optional<std::set<std::string>> other_roles = std::nullopt;  // where it does not hold
  std::optional<bool> has_system = std::nullopt;
  bool tells_opposite = false;  // the opposite of `has_system` holds where it does not
  bool is_certain = true;
};

class Reader {
 public:
  explicit Reader(const std::vector<JinjaPart>& parts) : parts_(parts) {}

  JinjaWays read() {
    for (const JinjaPart& part : parts_) note_roles(part.words);
    States states{{.way = {.roles = usual_roles}}};
    if (read_from(0, states) != parts_.size()) throw Unreadable();
    for (const State& state : states) found_.ways.insert(state.way);
    return std::move(found_);
  }

 private:
  struct State {
    JinjaWay way;
    std::map<std::string, std::string> texts;  // by variable
    auto operator<=>(const State&) const = default;
  };
  using States = std::set<State>;

  bool is_at(std::size_t at, std::string_view name) const {
    return at < parts_.size() && parts_[at].kind == JinjaPart::Kind::block &&
           !parts_[at].words.empty() && parts_[at].words[0].is(name);
  }

  std::size_t behind(std::size_t at, std::string_view name) const {
    if (!is_at(at, name)) throw Unreadable();
    return at + 1;
  }

  /// The ways of an expression through the states: each with the text that it writes.
  template <class Take>
  static States with_texts(const States& states, const Take& texts_of) {
    States made;
    for (const State& state : states) {
      for (auto& next : texts_of(state)) made.insert(std::move(next));
    }
    if (made.size() > most_ways) throw Unreadable();
    return made;
  }

  void write(const std::string& text, JinjaWay& way) const {
    if (text.empty()) return;
    if (is_in_loop_) {
      if (!way.end.empty()) way.turn += jinja_mark::unknown;  // a loop behind the loop
      way.turn += text;
    } else {
      (way.turn.empty() ? way.begin : way.end) += text;
    }
  }

  std::size_t read_from(std::size_t at, States& states) {
    while (at < parts_.size()) {
      const JinjaPart& part = parts_[at];
      const Words words = part.words;
      if (part.kind != JinjaPart::Kind::block) {
        states = with_texts(states, [&](const State& state) {
          std::vector<State> next;
          if (has_call(words, "raise_exception")) return next;
          const bool is_text = part.kind == JinjaPart::Kind::text;
          for (const std::string& text : is_text ? Texts{part.text} : texts_of(words, state)) {
            next.push_back(state);
            write(text, next.back().way);
          }
          return next;
        });
        ++at;
        continue;
      }
      if (words.empty()) throw Unreadable();
      const std::string& name = words[0].text;
      if (name == "if") {
        at = read_if(at, states);
      } else if (name == "for") {
        at = read_for(at, states);
      } else if (name == "set") {
        at = read_set(at, states);
      } else if (name == "macro") {
        at = behind(skip_from(at + 1), "endmacro");
      } else if (name == "generation" || name == "endgeneration") {
        ++at;
      } else if (name == "elif" || name == "else" || name.starts_with("end")) {
        return at;
      } else {
        throw Unreadable();
      }
    }
    return at;
  }

  std::size_t skip_from(std::size_t at) {
    States none;
    return read_from(at, none);
  }

  std::size_t read_if(std::size_t at, States& states) {
    States left = states, made;
    while (true) {
      const Words words = Words(parts_[at].words).subspan(1);
      States inside, outside;
      for (const State& state : left) {
        const Meaning meaning =
            is_at(at, "else") ? Meaning{.kind = Meaning::Kind::always} : meaning_of(words, state);
        if (meaning.kind != Meaning::Kind::never) narrow(state, meaning, true, inside);
        if (meaning.kind != Meaning::Kind::always) narrow(state, meaning, false, outside);
      }
      at = read_from(at + 1, inside);
      made.merge(inside);
      left = std::move(outside);
      if (is_at(at, "endif")) break;
      if (!is_at(at, "elif") && !is_at(at, "else")) throw Unreadable();
    }
    made.merge(left);
    if (made.size() > most_ways) throw Unreadable();
    states = std::move(made);
    return at + 1;
  }

  /// The state where a condition holds, or does not.
  static void narrow(State state, const Meaning& meaning, bool holds, States& to) {
    if (const auto& roles = holds ? meaning.roles : meaning.other_roles) {
      std::set<std::string> both;
      std::set_intersection(roles->begin(), roles->end(), state.way.roles.begin(),
                            state.way.roles.end(), std::inserter(both, both.end()));
      if (both.empty()) return;
      state.way.roles = std::move(both);
    }
    if (meaning.has_system && (holds || meaning.tells_opposite)) {
      const bool has_system = *meaning.has_system == holds;
      if (state.way.has_system && *state.way.has_system != has_system) return;
      state.way.has_system = has_system;
    }
    state.way.is_certain = state.way.is_certain && meaning.is_certain;
    to.insert(std::move(state));
  }

  Meaning meaning_of(Words words, const State& state) {
    words = without_brackets(words);
    const bool is_negated = !words.empty() && words[0].is("not");
    // Without tools, and with contents that are texts, in a whole conversation.
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!is_of_tools(words[i]) || (is_string(words[i]) && usual_roles.contains(words[i].text)))
        continue;
      const bool is_absent = i > 0 && words[i - 1].is("not");
      const bool is_none = i + 2 < words.size() && words[i + 1].is("is") && words[i + 2].is("none");
      if (is_negated && (i == 1 || words[1].is("("))) return {.kind = Meaning::Kind::always};
      if (i == 0 && is_none) return {.kind = Meaning::Kind::always};
      const bool is_part_of_message = i > 1 && words[i - 1].is(".") && words[i - 2].is("message");
      const bool is_absent_there = i > 2 && is_part_of_message && words[i - 3].is("not");
      if (!is_absent && !is_absent_there) return {.kind = Meaning::Kind::never};
    }
    if (any_names(words, "add_generation_prompt"))
      return {.kind = is_negated ? Meaning::Kind::always : Meaning::Kind::never};
    const bool asks_kind = words.size() > 2 && words[words.size() - 2].is("is") &&
                           words.back().is("string") && any_names(words, "content");
    if (asks_kind) return {.kind = Meaning::Kind::always};

    Meaning meaning;
    const bool is_simple = !has(words, "and") && !has(words, "or");
    if (is_simple && words.size() >= 3 && words[words.size() - 1].is("defined")) {
      const JinjaWord& name = words[is_negated ? 1 : 0];
      const bool is_own = words.size() == (is_negated ? 4u : 3u) && set_names_.contains(name.text);
      if (is_own)
        return {.kind = state.texts.contains(name.text) != is_negated ? Meaning::Kind::always
                                                                      : Meaning::Kind::never};
    }
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {  // a variable among other conditions
      const bool asks = words[i + 1].is("is") && words[i + 2].is("defined");
      if (asks && has(words, "and") && !has(words, "or") && (i == 0 || !words[i - 1].is("not")) &&
          set_names_.contains(words[i].text) && !state.texts.contains(words[i].text))
        return {.kind = Meaning::Kind::never};
    }
    static const std::set<std::string> known = {"messages", "message", "m",       "msg",  "item",
                                                "role",     "content", "and",     "or",   "not",
                                                "in",       "is",      "defined", "loop", "none"};
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool is_other = words[i].kind == JinjaWord::Kind::name &&
                            !known.contains(words[i].text) && words[i].text != variable_ &&
                            !set_names_.contains(words[i].text) && !is_of_tools(words[i]) &&
                            (i == 0 || !words[i - 1].is("."));
      if (is_other) meaning.is_certain = false;
    }
    take_roles(words, is_simple, is_negated, meaning);
    return meaning;
  }

  /// `x.role == 'user'`, `x.role in ['user', 'system']`, `messages[0].role != 'system'`, joined by
  /// `and` and `or`.
  void take_roles(Words words, bool is_simple, bool is_negated, Meaning& meaning) const {
    for (std::size_t i = 1; i < words.size(); ++i) {  // conditions are compared
      if (words[i - 1].is(")") && (words[i].is("!=") || words[i].is("=="))) return;
    }
    std::set<std::string> roles;
    int asked = 0, asked_first = 0, differ = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!names(words[i], "role")) continue;
      std::size_t next = i + 1;
      while (next < words.size() && (words[next].is("]") || words[next].is(")"))) ++next;
      if (next + 1 >= words.size()) return;
      const bool is_first = i >= 4 && [&] {
        for (std::size_t j = i; j-- > 0 && i - j < 6;) {
          if (words[j].is("messages")) return true;
        }
        return false;
      }();
      const bool is_equal = words[next].is("=="), is_other = words[next].is("!=");
      if (is_first) {
        if ((!is_equal && !is_other) || !is_string(words[next + 1])) return;
        ++asked_first;
        if (words[next + 1].text == "system")
          meaning.has_system = is_equal;
        else if (is_equal)
          meaning.has_system = false;
        continue;
      }
      ++asked;
      if (is_other) ++differ;
      if ((is_equal || is_other) && is_string(words[next + 1])) {
        roles.insert(words[next + 1].text);
      } else if (words[next].is("in")) {
        for (++next; next < words.size() && !words[next].is("]") && !words[next].is(")"); ++next) {
          if (is_string(words[next])) roles.insert(words[next].text);
        }
      } else {
        asked = -1000;  // something else about it
      }
    }
    if (asked_first > 1 || (asked_first == 1 && (has(words, "or") || is_negated)))
      meaning.has_system.reset();
    meaning.tells_opposite = meaning.has_system && is_simple;
    if (asked <= 0) return;
    // `a or b` with a part about something else says nothing.
    std::size_t joints = 0;
    for (const JinjaWord& word : words) joints += word.is("or") ? 1 : 0;
    const bool only_roles = joints < static_cast<std::size_t>(asked);
    std::set<std::string> others;
    std::set_difference(usual_roles.begin(), usual_roles.end(), roles.begin(), roles.end(),
                        std::inserter(others, others.end()));
    if (!only_roles) return;
    if (differ == 0 && !is_negated) {
      meaning.roles = roles;
      if (!has(words, "and")) meaning.other_roles = others;
    } else if (asked == 1 && differ == 1 && is_simple && !is_negated) {
      meaning.roles = others;
      meaning.other_roles = roles;
    }
  }

  void note_roles(Words words) {
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      if (!names(words[i], "role")) continue;
      const std::size_t sign = i + (words[i + 1].is("]") ? 2 : 1);
      if (sign + 1 >= words.size() || !words[sign].is("==") || !is_string(words[sign + 1]))
        continue;
      const std::string& role = words[sign + 1].text;
      if (!usual_roles.contains(role) && role != "model") found_.roles.insert(role);
    }
  }

  /// One pass of a loop over messages; other loops are skipped.
  std::size_t read_for(std::size_t at, States& states) {
    const Words words = parts_[at].words;
    const std::size_t in = find_outside(words, "in");
    if (in == words.size()) throw Unreadable();
    const Words list = words.subspan(in + 1);
    const bool is_of_messages = in == 2 && !list.empty() && !has(list, "content") &&
                                std::any_of(list.begin(), list.end(), [&](const JinjaWord& word) {
                                  return word.is("messages") || lists_.contains(word.text);
                                });
    const bool goes_back = std::count_if(list.begin(), list.end(),
                                         [](const JinjaWord& word) { return word.is(":"); }) > 1;
    if (is_of_messages && !goes_back) {
      const std::string variable = std::exchange(variable_, words[1].text);
      const bool was_in_loop = std::exchange(is_in_loop_, true);
      at = read_from(at + 1, states);
      variable_ = variable;
      is_in_loop_ = was_in_loop;
    } else {
      const std::size_t end = skip_from(at + 1);
      const auto writes = [](const JinjaPart& part) {
        return part.kind == JinjaPart::Kind::output && !has_call(part.words, "raise_exception");
      };
      const bool is_of_tools_only = std::any_of(list.begin(), list.end(), is_of_tools);
      if (!is_of_tools_only &&
          std::any_of(parts_.begin() + static_cast<std::ptrdiff_t>(at),
                      parts_.begin() + static_cast<std::ptrdiff_t>(end), writes)) {
        states = with_texts(states, [&](State state) {
          write({jinja_mark::unknown}, state.way);
          return std::vector<State>{std::move(state)};
        });
      }
      at = end;
    }
    if (is_at(at, "else")) at = skip_from(at + 1);
    return behind(at, "endfor");
  }

  std::size_t read_set(std::size_t at, States& states) {
    const Words words = parts_[at].words;
    const std::size_t sign = find_outside(words, "=");
    if (sign == words.size()) {  // a block of text
      if (words.size() > 1) assign(words[1].text, {}, states);
      return behind(skip_from(at + 1), "endset");
    }
    const Words value = words.subspan(sign + 1);
    if (sign == 2) {
      assign(words[1].text, value, states);
    } else if (!words[2].is(".")) {
      for (std::size_t i = 1; i < sign; ++i) assign(words[i].text, {}, states);
    }
    return at + 1;
  }

  /// `value`: empty where it is not known.
  void assign(const std::string& name, Words value, States& states) {
    set_names_.insert(name);
    const bool is_slice = value.size() > 3 && value[1].is("[") && !value[3].is("]");
    const bool is_list = !value.empty() && (value.size() == 1 || is_slice) &&
                         (value[0].is("messages") || lists_.contains(value[0].text));
    if (is_list) {
      if (name != "messages") lists_.insert(name);
      return;
    }
    states = with_texts(states, [&](const State& state) {
      std::vector<State> next;
      const Texts texts = value.empty() ? Texts{{jinja_mark::unknown}} : texts_of(value, state);
      for (const std::string& text : texts) {
        next.push_back(state);
        next.back().texts[name] = text;
      }
      return next;
    });
  }

  using Texts = std::vector<std::string>;

  /// What an expression may write: both ways of `a if b else c`, the joined parts of a sum.
  Texts texts_of(Words words, const State& state) {
    words = without_brackets(words);
    if (const std::size_t at = find_outside(words, "if"); at < words.size()) {
      const std::size_t other = find_outside(words, "else");
      const std::size_t end = std::max(at + 1, other);
      const Meaning meaning = meaning_of(words.subspan(at + 1, end - at - 1), state);
      const Texts no = other < words.size() ? texts_of(words.subspan(other + 1), state) : Texts{""};
      if (meaning.kind == Meaning::Kind::never) return no;
      Texts all = texts_of(words.first(at), state);
      if (meaning.kind == Meaning::Kind::open) all.insert(all.end(), no.begin(), no.end());
      return all;
    }
    const std::size_t sum = std::min(find_outside(words, "+"), find_outside(words, "~"));
    if (sum == words.size()) return part_of(words, state);
    Texts joined;
    for (const std::string& first : texts_of(words.first(sum), state)) {
      for (const std::string& second : texts_of(words.subspan(sum + 1), state))
        joined.push_back(first + second);
    }
    return joined;
  }

  Texts part_of(Words words, const State& state) {
    if (words.empty()) return {""};
    if (words.size() == 1 && is_string(words[0])) return {words[0].text};
    bool trims = false;
    while (true) {  // `| trim`, `.strip()`
      const std::size_t size = words.size();
      if (size > 2 && words[size - 2].is("|") && words[size - 1].is("trim")) {
        words = words.first(size - 2);
      } else if (size > 4 && words[size - 4].is(".") && words[size - 3].is("strip") &&
                 words[size - 2].is("(") && words[size - 1].is(")")) {
        words = words.first(size - 4);
      } else if (size > 2 && words[size - 2].is("|") &&
                 (words[size - 1].is("string") || words[size - 1].is("safe"))) {
        words = words.first(size - 2);
        continue;
      } else {
        break;
      }
      trims = true;
    }
    const std::string unknown(1, jinja_mark::unknown);
    Texts texts;
    if (words.size() == 1 && is_string(words[0])) {
      texts = {words[0].text};
    } else if (words.size() > 2 && words[0].is("(") &&
               find_outside(words, ")") == words.size() - 1) {
      texts = texts_of(words, state);
    } else if (words.size() == 1) {
      const auto found = state.texts.find(words[0].text);
      texts = {found != state.texts.end() ? found->second
               : words[0].is("bos_token") ? std::string(1, jinja_mark::begin_token)
               : words[0].is("eos_token") ? std::string(1, jinja_mark::end_token)
                                          : unknown};
    } else {
      texts = {std::string(1, member_of(words))};
    }
    for (std::string& text : texts) {
      const bool is_content = text == std::string(1, jinja_mark::content);
      if (trims && is_content) text = jinja_mark::trimmed;
    }
    return texts;
  }

  /// `message.content`, `message['role']`, `messages[0].content`.
  char member_of(Words words) const {
    const auto is_key = [&](Words key, std::string_view name) {
      return (key.size() == 2 && key[0].is(".") && key[1].is(name)) ||
             (key.size() == 3 && key[0].is("[") && is_string(key[1]) && key[1].text == name &&
              key[2].is("]"));
    };
    if (words[0].is(variable_)) {
      if (is_key(words.subspan(1), "role")) return jinja_mark::role;
      if (is_key(words.subspan(1), "content")) return jinja_mark::content;
    }
    const bool is_first = words.size() > 4 && words[0].is("messages") && words[1].is("[") &&
                          words[2].is("0") && words[3].is("]");
    if (is_first && is_key(words.subspan(4), "content")) return jinja_mark::system;
    return jinja_mark::unknown;
  }

  const std::vector<JinjaPart>& parts_;
  JinjaWays found_;
  std::set<std::string> set_names_, lists_;  // variables; those of messages
  std::string variable_ = "message";         // in the loop
  bool is_in_loop_ = false;
};

}  // namespace

std::optional<JinjaWays> jinja_ways(const std::vector<JinjaPart>& parts) {
  try {
    return Reader(parts).read();
  } catch (const Unreadable&) {
    return std::nullopt;
  }
}

}  // namespace tandem::api
