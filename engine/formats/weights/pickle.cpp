#include "engine/formats/weights/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "engine/graph/error.h"

namespace tandem {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view ordered_dict = "collections.OrderedDict";
constexpr std::size_t longest_shown = 80;

/// As a message shows what a file says: short, without control characters.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, longest_shown)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return shown + (text.size() > longest_shown ? "..." : "");
}

/// The machine that a pickle is a program of: a stack, marks on it and numbered memos. Values are
/// numbers, so that neither depth nor cycles cost more than memory.
class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const PickleRules& rules) : bytes_(bytes), rules_(rules) {}

  Pickle run() {
    if (bytes_.size() > rules_.bytes) {
      fail("the pickle is too long", std::to_string(rules_.bytes) + " bytes at most",
           std::to_string(bytes_.size()));
    }
    while (step()) {
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("the pickle does not end in one value");
    pickle_.root = stack_[0];
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void fail(std::string message, std::string expected = "", std::string got = "",
                         std::string fix = "") const {
    throw Error(ErrorKind::data, {.message = fmt::format("{} (at byte {})", message, opcode_at_),
                                  .file = rules_.file,
                                  .path = rules_.member,
                                  .expected = std::move(expected),
                                  .got = std::move(got),
                                  .fix = std::move(fix)});
  }
  [[noreturn]] void refuse_name(std::string_view name, const char* what) const {
    fail(fmt::format("{} {}, which is no part of weights: nothing of it was executed", what,
                     printable(name)),
         "", "", rules_.fix);
  }

  // What follows an opcode.
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the pickle is cut off");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <class T>
  T take_number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view take_line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("the pickle is cut off");
    const std::string_view line = take(end - at_);
    ++at_;
    return line;
  }

  // The stack. Nothing reaches below the last mark.
  PickleId add(PickleValue value) {
    if (pickle_.values.size() >= rules_.values) {
      fail("the pickle has too many values", std::to_string(rules_.values) + " at most");
    }
    pickle_.values.push_back(std::move(value));
    return static_cast<PickleId>(pickle_.values.size() - 1);
  }
  void push(PickleValue value) { stack_.push_back(add(std::move(value))); }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleId top() const {
    if (stack_.size() <= floor()) fail("the pickle is broken: it takes more values than there are");
    return stack_.back();
  }
  PickleId pop() {
    const PickleId id = top();
    stack_.pop_back();
    return id;
  }
  std::vector<PickleId> pop_to_mark() {
    if (marks_.empty()) fail("the pickle is broken: a mark is missing");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleId> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<PickleId> pop_several(std::size_t count) {
    std::vector<PickleId> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  void add_items(PickleId to, const std::vector<PickleId>& items) {
    PickleValue& value = pickle_.values[to];
    for (const PickleId item : items) {
      const int below = pickle_.values[item].depth + 1;
      if (below > rules_.depth) {
        fail("values are nested too deeply", std::to_string(rules_.depth) + " levels at most");
      }
      value.depth = static_cast<std::uint8_t>(std::max<int>(value.depth, below));
      value.items.push_back(item);
    }
  }
  void push_holder(Kind kind, const std::vector<PickleId>& items, std::string text = "") {
    const PickleId id = add({.kind = kind, .text = std::move(text)});
    add_items(id, items);
    stack_.push_back(id);
  }
  void append(const std::vector<PickleId>& items) {
    const PickleId list = top();
    if (pickle_.at(list).kind != Kind::list) fail("the pickle is broken: no list to append to");
    add_items(list, items);
  }
  void set_items(const std::vector<PickleId>& items) {
    const PickleId dict = top();
    if (pickle_.at(dict).kind != Kind::dict || items.size() % 2 != 0) {
      fail("the pickle is broken: no dict, or a key without a value");
    }
    add_items(dict, items);
  }

  void push_text(std::string_view text) { push({.kind = Kind::text, .text = std::string(text)}); }
  void push_integer(std::int64_t integer) { push({.kind = Kind::integer, .integer = integer}); }
  void push_long(std::string_view digits) {  // little-endian, two's complement
    if (digits.size() > 8) return push({});
    std::uint64_t value = 0;
    for (std::size_t i = digits.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(digits[i]);
    if (!digits.empty() && digits.size() < 8 && (digits.back() & 0x80) != 0)
      value |= ~std::uint64_t{0} << (8 * digits.size());
    push_integer(static_cast<std::int64_t>(value));
  }
  void push_number() {  // big-endian
    auto bits = take_number<std::uint64_t>();
    bits = __builtin_bswap64(bits);
    push({.kind = Kind::number, .number = std::bit_cast<double>(bits)});
  }

  void push_global(std::string name) {
    if (name != ordered_dict && !rules_.may_stand(name)) refuse_name(name, "it asks for");
    push({.kind = Kind::global, .text = std::move(name)});
  }
  void stack_global() {
    const std::vector<PickleId> names = pop_several(2);
    const PickleValue &module = pickle_.at(names[0]), &name = pickle_.at(names[1]);
    if (module.kind != Kind::text || name.kind != Kind::text)
      fail("the pickle is broken: a name that is no text");
    push_global(module.text + "." + name.text);
  }
  void call() {
    const PickleId arguments = pop(), function = pop();
    const PickleValue &of = pickle_.at(function), &with = pickle_.at(arguments);
    if (of.kind != Kind::global) refuse_name("a value of its own", "it calls");
    if (with.kind != Kind::tuple) fail("the pickle is broken: arguments that are no tuple");
    if (of.text == ordered_dict) {
      if (!with.items.empty()) fail("an OrderedDict that is made with items is not read");
      return push({.kind = Kind::dict, .integer = 1});
    }
    if (!rules_.may_be_called(of.text)) refuse_name(of.text, "it calls");
    push_holder(Kind::call, {arguments}, of.text);
  }
  /// `integer` of a dict: whether it is an OrderedDict, whose attributes (_metadata of a module's
  /// state_dict) say nothing of its items.
  void build() {
    pop();
    const PickleValue& object = pickle_.at(top());
    if (object.kind == Kind::dict && object.integer == 1) return;
    refuse_name(object.kind == Kind::call ? std::string_view(object.text) : "a plain value",
                "it sets the state of");
  }
  /// Opcodes that make objects of classes.
  [[noreturn]] void refuse_object(std::size_t below) const {
    std::string_view name = "a class";
    if (stack_.size() > below && pickle_.at(stack_[stack_.size() - 1 - below]).kind == Kind::global)
      name = pickle_.at(stack_[stack_.size() - 1 - below]).text;
    refuse_name(name, "it makes an object of");
  }

  void remember(std::uint64_t number) { memo_[number] = top(); }
  void recall(std::uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) fail("the pickle is broken: it reads an entry that it never stored");
    stack_.push_back(found->second);
  }

  /// False at the end.
  bool step() {
    constexpr std::size_t most_steps = std::size_t{1} << 24;
    if (++steps_ > most_steps) fail("the pickle has too many steps");
    opcode_at_ = at_;
    const auto opcode = static_cast<unsigned char>(take(1)[0]);
    switch (opcode) {
      case 0x80:  // PROTO
        if (take_number<std::uint8_t>() > 5) fail("a newer protocol of pickle", "5 at most");
        break;
      case 0x95:  // FRAME
        take(8);
        break;
      case '.':
        return false;
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '0':  // POP
        if (stack_.size() == floor() && !marks_.empty())
          marks_.pop_back();
        else
          pop();
        break;
      case '1':  // POP_MARK
        pop_to_mark();
        break;
      case '2':  // DUP
        stack_.push_back(top());
        break;
      case 'N':
        push({});
        break;
      case 0x88:
      case 0x89:
        push({.kind = Kind::boolean, .integer = opcode == 0x88});
        break;
      case 'J':
        push_integer(take_number<std::int32_t>());
        break;
      case 'K':
        push_integer(take_number<std::uint8_t>());
        break;
      case 'M':
        push_integer(take_number<std::uint16_t>());
        break;
      case 0x8a:  // LONG1
        push_long(take(take_number<std::uint8_t>()));
        break;
      case 0x8b:  // LONG4
        push_long(take(take_number<std::uint32_t>()));
        break;
      case 'G':
        push_number();
        break;
      case 'X':
        push_text(take(take_number<std::uint32_t>()));
        break;
      case 0x8c:  // SHORT_BINUNICODE
      case 'U':   // SHORT_BINSTRING
        push_text(take(take_number<std::uint8_t>()));
        break;
      case 0x8d:  // BINUNICODE8
        push_text(take(take_number<std::uint64_t>()));
        break;
      case 'T':  // BINSTRING
        push_text(take(take_number<std::uint32_t>()));
        break;
      case 'C':  // SHORT_BINBYTES
        take(take_number<std::uint8_t>());
        push({});
        break;
      case 'B':  // BINBYTES
        take(take_number<std::uint32_t>());
        push({});
        break;
      case 0x8e:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        take(take_number<std::uint64_t>());
        push({});
        break;
      case '}':
        push({.kind = Kind::dict});
        break;
      case ']':
        push({.kind = Kind::list});
        break;
      case ')':
        push({.kind = Kind::tuple});
        break;
      case 't':
        push_holder(Kind::tuple, pop_to_mark());
        break;
      case 0x85:
      case 0x86:
      case 0x87:
        push_holder(Kind::tuple, pop_several(opcode - 0x84u));
        break;
      case 'l':
        push_holder(Kind::list, pop_to_mark());
        break;
      case 'd': {
        const std::vector<PickleId> items = pop_to_mark();
        push({.kind = Kind::dict});
        set_items(items);
        break;
      }
      case 'a':
        append(pop_several(1));
        break;
      case 'e':
        append(pop_to_mark());
        break;
      case 's':
        set_items(pop_several(2));
        break;
      case 'u':
        set_items(pop_to_mark());
        break;
      case 'q':
        remember(take_number<std::uint8_t>());
        break;
      case 'r':
        remember(take_number<std::uint32_t>());
        break;
      case 0x94:  // MEMOIZE
        remember(memo_.size());
        break;
      case 'h':
        recall(take_number<std::uint8_t>());
        break;
      case 'j':
        recall(take_number<std::uint32_t>());
        break;
      case 'c': {
        const std::string module(take_line()), name(take_line());
        push_global(module + "." + name);
        break;
      }
      case 0x93:
        stack_global();
        break;
      case 'R':
        call();
        break;
      case 'b':
        build();
        break;
      case 'Q':
        push_holder(Kind::persistent, pop_several(1));
        break;
      case 'i': {  // INST
        const std::string module(take_line()), name(take_line());
        refuse_name(module + "." + name, "it makes an object of");
      }
      case 'o':  // OBJ
        refuse_object(marks_.empty() ? 0
                                     : stack_.size() - 1 - std::min(floor(), stack_.size() - 1));
      case 0x81:  // NEWOBJ
        refuse_object(1);
      case 0x92:  // NEWOBJ_EX
        refuse_object(2);
      default:
        fail(fmt::format("no part of weights: the operation {:#04x} of pickle", opcode), "", "",
             rules_.fix);
    }
    return true;
  }

  std::string_view bytes_;
  const PickleRules& rules_;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, PickleId> memo_;
  std::size_t at_ = 0, opcode_at_ = 0, steps_ = 0;
};

}  // namespace

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  const PickleValue* found = nullptr;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& name = at(dict.items[i]);
    if (name.kind == Kind::text && name.text == key) found = &at(dict.items[i + 1]);
  }
  return found;  // the last one, as in Python
}

Pickle read_pickle(std::string_view bytes, const PickleRules& rules) {
  return PickleMachine(bytes, rules).run();
}

}  // namespace tandem
