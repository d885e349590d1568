// Pickles as data: what is read, and that nothing else is.
#include "engine/formats/weights/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/weights/torch_names.h"
#include "engine/formats/zip_file.h"
#include "tests/harness/folders.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/pickle_bytes.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using Kind = PickleValue::Kind;
using ::testing::AllOf;
using ::testing::HasSubstr;

PickleRules rules() {
  return {.file = "w.pt",
          .member = "data.pkl",
          .fix = "save only the weights",
          .may_stand = may_stand_in_weights,
          .may_be_called = may_be_called_in_weights};
}
Pickle parsed(const std::string& body) { return read_pickle("\x80\x02" + body + ".", rules()); }
std::string refusal(const std::string& body) {
  return error_of([&] { parsed(body); });
}
PickleValue root_of(const std::string& body) {
  const Pickle pickle = parsed(body);
  return pickle.at(pickle.root);
}

TEST(Pickle, NumbersAndTexts) {
  EXPECT_EQ(root_of("K\xff").integer, 255);
  EXPECT_EQ(root_of(std::string("M\x01\x02", 3)).integer, 0x201);
  EXPECT_EQ(root_of("J\xfe\xff\xff\xff").integer, -2);
  EXPECT_EQ(root_of(std::string("\x8a\x02\x00\xff", 4)).integer, -256);
  EXPECT_EQ(root_of(std::string("\x8a\x00", 2)).integer, 0);
  EXPECT_EQ(root_of(pickled(std::int64_t{-7'000'000'000})).integer, -7'000'000'000);
  EXPECT_EQ(root_of("\x8a\x09" + std::string(9, '\1')).kind, Kind::other);
  EXPECT_EQ(root_of(std::string("G\x3f\xf8\0\0\0\0\0\0", 9)).number, 1.5);
  EXPECT_EQ(root_of("\x88").integer, 1);
  EXPECT_EQ(root_of("N").kind, Kind::other);
  EXPECT_EQ(root_of(pickled("abc")).text, "abc");
  EXPECT_EQ(root_of(std::string("X\x02\0\0\0xy", 7)).text, "xy");
}

TEST(Pickle, Containers) {
  const Pickle tuple = parsed("K\1K\2\x86");
  ASSERT_EQ(tuple.at(tuple.root).items.size(), 2u);
  EXPECT_EQ(tuple.at(tuple.at(tuple.root).items[1]).integer, 2);
  const Pickle list = parsed("](K\1K\2eK\3a");
  EXPECT_EQ(list.at(list.root).items.size(), 3u);
  const Pickle dict =
      parsed("}(" + pickled("a") + "K\1" + pickled("b") + "K\2u" + pickled("a") + "K\3s");
  ASSERT_NE(dict.find(dict.at(dict.root), "a"), nullptr);
  EXPECT_EQ(dict.find(dict.at(dict.root), "a")->integer, 3);
  EXPECT_EQ(dict.find(dict.at(dict.root), "c"), nullptr);
}

TEST(Pickle, MemosStandForTheSameValue) {
  const Pickle pickle = parsed(std::string("]q\0h\0\x86", 6));
  const PickleValue& pair = pickle.at(pickle.root);
  EXPECT_EQ(pair.items[0], pair.items[1]);
  // A list that contains itself does no harm.
  EXPECT_EQ(root_of(std::string("]q\0h\0a", 6)).items.size(), 1u);
}

// Each way in which Python would import or call something.
TEST(Pickle, OtherNamesAreRefused) {
  const std::string system = pickled_name("os", "system"), text = pickled("true");
  const auto is_refused =
      AllOf(HasSubstr("w.pt: data.pkl: "), HasSubstr("os.system"),
            HasSubstr("nothing of it was executed"), HasSubstr("(save only the weights)"));
  EXPECT_THAT(refusal(system + text + "\x85R"), is_refused);
  EXPECT_THAT(refusal(system), is_refused);
  EXPECT_THAT(refusal(pickled("os") + pickled("system") + "\x93"), is_refused);
  EXPECT_THAT(refusal("(" + text + "ios\nsystem\n"), is_refused);
  EXPECT_THAT(refusal("(" + system + text + "o"), is_refused);
  EXPECT_THAT(refusal(pickled_name("torch.os", "system")), HasSubstr("torch.os.system"));
  EXPECT_THAT(refusal(pickled_name("torch", "load")), HasSubstr("torch.load"));
  EXPECT_THAT(refusal(pickled_name("torch._utils", "_rebuild_qtensor")),
              HasSubstr("torch._utils._rebuild_qtensor"));
  EXPECT_THAT(refusal(pickled_name("builtins", "eval")), HasSubstr("builtins.eval"));
  EXPECT_THAT(refusal(pickled_name("x", "y\x01" + std::string(200, 'z'))),
              AllOf(HasSubstr("x.y?zz"), HasSubstr("zz...")));
}

TEST(Pickle, KnownNamesAreOnlyUsedAsMeant) {
  const std::string storage = pickled_name("torch", "FloatStorage");
  EXPECT_EQ(root_of(storage).text, "torch.FloatStorage");
  EXPECT_THAT(refusal(storage + ")R"), HasSubstr("it calls torch.FloatStorage"));
  EXPECT_THAT(refusal(storage + ")\x81"), HasSubstr("it makes an object of torch.FloatStorage"));
  EXPECT_THAT(refusal(storage + ")}\x92"), HasSubstr("it makes an object of torch.FloatStorage"));
  EXPECT_THAT(refusal("]})R"), HasSubstr("it calls a value of its own"));
  EXPECT_THAT(refusal("}}b"), HasSubstr("it sets the state of a plain value"));
  const std::string size = pickled_name("torch", "Size") + ")\x85R";
  EXPECT_EQ(root_of(size).kind, Kind::call);
  EXPECT_THAT(refusal(size + "}b"), HasSubstr("it sets the state of torch.Size"));
  EXPECT_EQ(root_of(pickled_name("collections", "OrderedDict") + ")R}b").kind, Kind::dict);
  EXPECT_THAT(refusal(pickled_name("collections", "OrderedDict") + "]\x85R"),
              HasSubstr("made with items"));
  EXPECT_THAT(refusal("\x82\x01"), HasSubstr("the operation 0x82 of pickle"));
}

TEST(Pickle, BrokenOnes) {
  EXPECT_THAT(refusal(""), HasSubstr("does not end in one value"));
  EXPECT_THAT(refusal("K\1K\1"), HasSubstr("does not end in one value"));
  EXPECT_THAT(refusal("K\1("), HasSubstr("does not end in one value"));
  EXPECT_THAT(refusal("\x85"), HasSubstr("takes more values than there are (at byte 2)"));
  EXPECT_THAT(refusal("K\1(\x85t"), HasSubstr("takes more values than there are"));
  EXPECT_THAT(refusal("t"), HasSubstr("a mark is missing"));
  EXPECT_THAT(refusal("h\7"), HasSubstr("reads an entry that it never stored"));
  EXPECT_THAT(refusal("K\1K\1a"), HasSubstr("no list to append to"));
  EXPECT_THAT(refusal("}(K\1u"), HasSubstr("a key without a value"));
  EXPECT_THAT(refusal("X\xff\xff\xff\x7fxy"), HasSubstr("cut off"));
  EXPECT_THAT(refusal("\x8e\xff\xff\xff\xff\xff\xff\xff\xff"), HasSubstr("cut off"));
  EXPECT_THAT(error_of([] { read_pickle("\x80\x09N.", rules()); }), HasSubstr("newer protocol"));
}

TEST(Pickle, LimitsAreKept) {
  EXPECT_THAT(refusal(")" + std::string(64, '\x85')), ::testing::StrEq("no error"));
  EXPECT_THAT(refusal(")" + std::string(65, '\x85')), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal(std::string(66, ']') + std::string(65, 'a')), HasSubstr("nested too deeply"));
  PickleRules small = rules();
  small.values = 100;
  const std::string many = "]" + std::string(100, 'N');
  EXPECT_THAT(error_of([&] { read_pickle(many + ".", small); }),
              AllOf(HasSubstr("too many values"), HasSubstr("expected 100 at most")));
  small.bytes = 50;
  EXPECT_THAT(error_of([&] { read_pickle(many + ".", small); }), HasSubstr("too long"));
  // Nothing is added: 17 million steps on one value.
  const std::string steps = "K\1" + std::string(std::size_t{17} << 20, '2');
  EXPECT_THAT(refusal(steps), HasSubstr("too many steps"));
}

// PyTorch's own, cut off anywhere, or with any byte changed: an Error or a value, never anything
// else.
TEST(Pickle, DamagedOnes) {
  const std::string path = source_folder() + "/tests/data/torch_weights/plain.pt";
  const ZipFile archive(path);
  const std::string name = "plain/data.pkl";
  ZipStream stream(archive, name);
  std::string whole(stream.size(), '\0');
  ASSERT_EQ(read_fully(stream, whole.data(), whole.size()), whole.size());
  EXPECT_GT(read_pickle(whole, rules()).values.size(), 50u);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_THAT(error_of([&] { read_pickle(whole.substr(0, size), rules()); }),
                HasSubstr("w.pt: data.pkl: "))
        << size;
  }
  int read = 0, refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char value : std::string("\0\1()Rbciotu\x80\x81\xff", 14)) {
      std::string changed = whole;
      changed[at] = value;
      const bool is_read = error_of([&] { read_pickle(changed, rules()); }) == "no error";
      ++(is_read ? read : refused);
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tandem
