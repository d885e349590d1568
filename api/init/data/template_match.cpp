#include "api/init/data/template_match.h"

#include <algorithm>
#include <set>

#include "api/init/data/jinja_ways.h"
#include "api/init/fields.h"

namespace tandem::api {
namespace {

using Texts = std::set<std::string>;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}
std::string replaced(std::string text, char what, const std::string& by) {
  return replaced(std::move(text), std::string(1, what), by);
}
/// Whether contents are trimmed does not count.
std::string loose(const std::string& text) {
  return replaced(text, jinja_mark::trimmed, {jinja_mark::content});
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
bool has(const std::string& text, char mark) { return text.find(mark) != std::string::npos; }
bool has_mark(const std::string& text) {
  return text.find_first_of(jinja_mark::all) != std::string::npos;
}
std::string without_marks(std::string text) {
  for (const char mark : jinja_mark::all) std::erase(text, mark);
  return text;
}
std::string quoted(const std::string& text) { return shown_text(text); }

void say(const std::string& what, std::vector<std::string>& to) {
  if (std::find(to.begin(), to.end(), what) == to.end()) to.push_back(what);
}

std::string turn_text(const ChatTurn& turn) {
  return turn.before + turn.lead + (turn.trims ? jinja_mark::trimmed : jinja_mark::content) +
         turn.behind + turn.gap;
}

/// The layout that is compared: of a named template, or as it was read.
struct Layout {
  std::string user, assistant;  // turns with marks
  std::string system;           // "": it has none of its own
  std::string begin, end;
  SystemPlace place = SystemPlace::refused;
  std::string joins;  // in front of a content with which a system message is joined
};

Layout layout_of(const ChatTemplate& style) {
  const bool is_own = style.system_place == SystemPlace::own_turn;
  return {.user = turn_text(style.user),
          .assistant = turn_text(style.assistant),
          .system = is_own ? turn_text(style.system) : "",
          .begin = style.begin,
          .end = style.end,
          .place = style.system_place,
          .joins = style.user.before};
}

class Match {
 public:
  Match(const JinjaWays& ways, const std::string& begin_token, const std::string& end_token,
        OwnTemplate& own)
      : begin_token_(begin_token), own_(own) {
    for (JinjaWay way : ways.ways) {
      for (std::string* text : {&way.begin, &way.turn, &way.end}) {
        *text = replaced(*text, jinja_mark::begin_token, begin_token);
        if (!end_token.empty()) *text = replaced(*text, jinja_mark::end_token, end_token);
      }
      ways_.push_back(way);
    }
  }

  /// The first template that writes the same turns.
  void find() {
    for (const ChatTemplate& style : all_chat_templates()) {
      const Layout layout = layout_of(style);
      end_ = style.end.empty() ? style.assistant.behind : style.end;  // if no file states it
      const std::string wanted = loose(layout.user + layout.assistant);
      if (!takes_system_turns(layout)) continue;
      for (const std::string& user : turns("user")) {
        for (const std::string& assistant : turns("assistant")) {
          if (loose(user + assistant) != wanted) continue;
          own_.known = &style;
          compare(layout, user, assistant);
          return;
        }
      }
    }
    end_.clear();
    read_pattern();
  }

 private:
  std::string whole(const std::string& text) const {
    return replaced(text, jinja_mark::end_token,
                    end_.empty() ? std::string(1, jinja_mark::unknown) : end_);
  }
  Texts turns(const std::string& role) const {
    Texts found;
    for (const JinjaWay& way : ways_) {
      if (way.roles.contains(role)) found.insert(whole(replaced(way.turn, jinja_mark::role, role)));
    }
    return found;
  }

  /// Whether turns that are of the system message only are the same.
  bool takes_system_turns(const Layout& layout) const {
    return std::none_of(ways_.begin(), ways_.end(), [&](const JinjaWay& way) {
      const std::string turn = loose(whole(replaced(way.turn, jinja_mark::role, "system")));
      return way.roles == std::set<std::string>{"system"} && has(turn, jinja_mark::content) &&
             !turn.ends_with(loose(layout.system.empty() ? std::string(1, '\0') : layout.system));
    });
  }

  void compare(const Layout& layout, const std::string& user, const std::string& assistant) {
    const std::string turns_of_own = user + assistant;
    const bool trims = has(turns_of_own, jinja_mark::trimmed);
    const bool is_trimmed = has(layout.user + layout.assistant, jinja_mark::trimmed);
    if (trims && !is_trimmed) say("contents without the white space around them (trim)", own_.more);
    if (!trims && is_trimmed) say("the white space around contents", own_.more);
    take_begin(layout, user);
    take_system(layout);
    take_end(layout);
    take_others(turns("user"), user);
    take_others(turns("assistant"), assistant);
  }

  /// What is written before the first message of the user, where there is no system message.
  void take_begin(const Layout& layout, const std::string& user) {
    Texts begins, systems;
    bool is_certain = false, is_computed = false;
    for (const JinjaWay& way : ways_) {
      if (!way.roles.contains("user") || way.has_system.value_or(false)) continue;
      const std::string all = whole(replaced(way.begin + way.turn, jinja_mark::role, "user"));
      if (has(all, jinja_mark::system)) continue;
      std::string before, system;
      if (loose(all).ends_with(loose(user))) {
        before = all.substr(0, all.size() - user.size());
        const std::size_t content = loose(layout.system).find(jinja_mark::content);
        const std::string opens =
            layout.system.substr(0, content == std::string::npos ? 0 : content);
        const std::size_t at = opens.empty() ? std::string::npos : before.find(opens);
        if (at != std::string::npos) {
          system = before.substr(at + opens.size());
          before.resize(at);
          const std::string closes = layout.system.substr(content + 1);
          if (has_mark(system) || !system.ends_with(closes)) {
            is_computed = true;
            system.clear();
          } else {
            system.resize(system.size() - closes.size());
          }
        }
      } else if (!layout.joins.empty() && user.starts_with(layout.joins) &&
                 loose(all).ends_with(loose(user.substr(layout.joins.size())))) {
        before = all.substr(0, all.size() - (user.size() - layout.joins.size()));
        const std::size_t at = before.find(layout.joins);
        if (at == std::string::npos) continue;
        system = before.substr(at + layout.joins.size());
        before.resize(at);
        if (has_mark(system) || !system.ends_with("\n\n")) {
          is_computed = true;
          system.clear();
        } else {
          system.resize(system.size() - 2);
        }
      } else {
        continue;
      }
      if (has_mark(before))
        say("a beginning that it computes", own_.more);
      else
        begins.insert(before);
      if (system.empty()) continue;
      systems.insert(system);
      is_certain = is_certain || way.is_certain;
    }
    // Where the first turn has a beginning, the others have none.
    if (begins.size() > 1) begins.erase("");
    if (begins.size() == 1 && *begins.begin() != layout.begin) own_.begin = *begins.begin();
    if (begins.size() > 1) say("beginnings that depend on conditions", own_.more);
    if (systems.size() == 1 && is_certain && !is_computed)
      own_.system = *systems.begin();
    else if ((!systems.empty() || is_computed) && !has_dates_)
      say("a system message of its own that is no fixed text", own_.more);
  }

  void take_system(const Layout& layout) {
    if (layout.place == SystemPlace::refused) return;
    bool has_any = false, is_same = false;
    const auto look = [&](const std::string& text, const std::string& wanted) {
      has_any = has_any || has(text, jinja_mark::system) || has(text, jinja_mark::content);
      is_same = is_same || loose(text).ends_with(wanted);
    };
    if (layout.place == SystemPlace::own_turn) {
      for (const std::string& text : turns("system")) look(loose(text), loose(layout.system));
      for (const JinjaWay& way : ways_) {
        if (!has(way.begin, jinja_mark::system)) continue;
        look(replaced(whole(way.begin), jinja_mark::system, {jinja_mark::content}),
             loose(layout.system));
      }
    } else {
      const std::string wanted =
          layout.joins + jinja_mark::system + "\n\n" + layout.user.substr(layout.joins.size());
      for (const std::string& text : turns("user")) {
        if (has(text, jinja_mark::system)) look(text, loose(wanted));
      }
    }
    if (!has_any)
      say("system messages", own_.less);
    else if (!is_same)
      say("system messages in another form", own_.more);
  }

  void take_end(const Layout& layout) {
    Texts ends;
    for (const JinjaWay& way : ways_) ends.insert(whole(way.end));
    for (const std::string& end : ends) {
      if (end == layout.end) continue;
      if (end.empty() && !ends.contains(layout.end))
        say(quoted(layout.end) + " at the end", own_.less);
      else if (!end.empty())
        say((has_mark(end) ? "a text that it computes" : quoted(end)) + " at the end", own_.more);
    }
  }

  /// Turns that are written under conditions only.
  void take_others(const Texts& all, const std::string& usual) {
    for (const std::string& text : all) {
      if (loose(text).ends_with(loose(usual)) || has(text, jinja_mark::system)) continue;
      const std::string a = loose(text), b = loose(usual);
      const std::size_t most = std::min(a.size(), b.size());
      std::size_t begin = 0, end = 0;
      while (begin < most && a[begin] == b[begin]) ++begin;
      while (end < most - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
      const std::string added = a.substr(begin, a.size() - begin - end);
      const std::string lacking = b.substr(begin, b.size() - begin - end);
      const bool has_content = has(a, jinja_mark::content) || has(a, jinja_mark::unknown);
      if (!has_content || has(added, "<think>")) continue;  // a note has it
      if (const std::string literal = without_marks(added); !literal.empty())
        say(quoted(literal) + " under a condition", own_.more);
      else if (!added.empty() && !thinks_)
        say("contents that it changes under a condition", own_.more);
      else if (added.empty() && !without_marks(lacking).empty())
        say("messages without " + quoted(without_marks(lacking)) + " under a condition", own_.more);
    }
  }

  /// The turn with which all others end, if one content is all that it does not state.
  static std::string usual_turn(const Texts& all) {
    std::string usual;
    for (const std::string& text : all) {
      const std::string content = loose(text);
      if (std::count(content.begin(), content.end(), jinja_mark::content) != 1 ||
          without_marks(text).size() + 1 != text.size())
        continue;
      const bool is_usual = std::all_of(all.begin(), all.end(), [&](const std::string& other) {
        return loose(other).ends_with(content) || without_marks(other) == other;
      });
      if (is_usual) usual = text;
    }
    return usual;
  }

  void read_pattern() {
    const std::string user = usual_turn(turns("user")), assistant = usual_turn(turns("assistant"));
    if (user.empty() || assistant.empty()) return;
    const std::string system = usual_turn(turns("system"));
    const auto pattern = [](const std::string& turn) {
      return replaced(loose(turn), jinja_mark::content, std::string(content_mark));
    };
    own_.pattern = ChatTemplateConfig{
        .system = pattern(system), .user = pattern(user), .assistant = pattern(assistant)};
    const bool has_system = !system.empty();
    compare({.user = loose(user),
             .assistant = loose(assistant),
             .system = loose(system),
             .begin = "",
             .end = "",
             .place = has_system ? SystemPlace::own_turn : SystemPlace::refused,
             .joins = ""},
            user, assistant);
  }

 public:
  bool thinks_ = false, has_dates_ = false;  // notes have it

 private:
  std::string begin_token_, end_;
  OwnTemplate& own_;
  std::vector<JinjaWay> ways_;
};

/// What words of the text tell that no turn of a plain conversation shows.
void take_words(const std::vector<JinjaPart>& parts, const JinjaWays& ways, OwnTemplate& own,
                bool& thinks, bool& has_dates) {
  bool has_tools = false, has_images = false;
  for (const JinjaPart& part : parts) {
    for (const JinjaWord& word : part.words) {
      const std::string& text = word.text;
      const bool is_name = word.kind == JinjaWord::Kind::name;
      has_tools = has_tools || (is_name && has(text, "tool")) || has(text, "<tool");
      has_dates = has_dates || has(text, "strftime") || has(text, "Cutting Knowledge Date");
      has_images = has_images || (!is_name && text == "image");
      thinks = thinks || has(text, "<think>") || (is_name && has(text, "thinking"));
    }
    thinks = thinks || has(part.text, "<think>");
    has_dates = has_dates || has(part.text, "Cutting Knowledge Date");
  }
  if (thinks) say("thoughts of earlier answers", own.more);
  if (has_dates) say("dates in the system message", own.more);
  if (has_tools) say("tools", own.more);
  if (has_images) say("images", own.more);
  for (const std::string& role : ways.roles) {
    if (!has_tools || (role != "ipython" && !has(role, "tool")))
      say("messages of the role " + quoted(role), own.more);
  }
}

}  // namespace

void match_template(const std::string& jinja, const std::string& begin_token,
                    const std::string& end_token, OwnTemplate& own) {
  const auto parts = jinja_parts(jinja);
  const auto ways = parts ? jinja_ways(*parts) : std::nullopt;
  if (!ways) return;
  Match match(*ways, begin_token, end_token, own);
  take_words(*parts, *ways, own, match.thinks_, match.has_dates_);
  match.find();
  if (own.known == nullptr && !own.pattern) own.more.clear();  // notes are about those
}

}  // namespace tandem::api
