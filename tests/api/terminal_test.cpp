// How the program shows names and cells on a terminal that they could control.
#include "api/program/terminal.h"

#include <gtest/gtest.h>

namespace tandem::api {
namespace {

TEST(ForTerminal, LinesTabsAndLettersStay) {
  EXPECT_EQ(for_terminal("a\tb\nGröße 日本 🎲"), "a\tb\nGröße 日本 🎲");
}

TEST(ForTerminal, ControlCharactersAreShownByTheirBytes) {
  EXPECT_EQ(for_terminal("\x1b[31m\r\x7f"), "\\x1b[31m\\x0d\\x7f");
  EXPECT_EQ(for_terminal("\xc2\x9b"), "\\xc2\\x9b");  // U+009B begins a command
  // U+202E reverses the text that follows.
  EXPECT_EQ(for_terminal("\xe2\x80\xae"), "\\xe2\\x80\\xae");
  EXPECT_EQ(for_terminal("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");  // U+2066
  EXPECT_EQ(for_terminal(std::string(1, '\0')), "\\x00");
}

TEST(ForTerminal, BytesThatAreNoCharacters) {
  EXPECT_EQ(for_terminal("\x9b"), "\\x9b");
  EXPECT_EQ(for_terminal("a\xe2\x82"), "a\\xe2\\x82");
  EXPECT_EQ(for_terminal("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

}  // namespace
}  // namespace tandem::api
