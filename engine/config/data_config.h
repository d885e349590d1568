// [data] of train.toml.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/config/keys/config_types.h"
#include "engine/graph/structures/out_of_line.h"

namespace tandem {

/// Which forms `files` may have, and the message where it has the other one.
struct FilesForm {
  bool is_list = true;   // files in order
  bool is_table = true;  // array = file
  std::string_view refusal = "", fix = "";
};

// The types of data: a name, the form of `files`, the arrays where files do not name them
// ("a|b|c"), and the members that have keys of their own.
struct IdxFiles {
  static constexpr std::string_view name = "idx", arrays = "";
  static constexpr FilesForm files{
      .is_list = false,
      .refusal = "idx files hold one array each",
      .fix = "write { images = \"…-idx3-ubyte.gz\", labels = \"…-idx1-ubyte.gz\" }"};
  bool operator==(const IdxFiles&) const = default;
};
struct CifarFiles {
  static constexpr std::string_view name = "cifar", arrays = "images|labels|coarse_labels";
  static constexpr FilesForm files{.is_table = false,
                                   .refusal = "cifar files hold images and labels together"};
  bool operator==(const CifarFiles&) const = default;
};
struct NpzFiles {
  static constexpr std::string_view name = "npz", arrays = "";
  static constexpr FilesForm files{};
  bool operator==(const NpzFiles&) const = default;
};
enum class OnBad : std::uint8_t { error, skip };
template <>
inline constexpr std::string_view names_of<OnBad> = "error|skip";
inline constexpr std::string_view on_bad_help =
    "a row, line or picture that cannot be read: an error, or it is left out and counted";
/// What separates the cells of a csv file.
enum class Separator : std::uint8_t { automatic, comma, semicolon, tab, bar };
template <>
inline constexpr std::string_view names_of<Separator> = "auto|,|;|tab|bar";
inline constexpr std::pair<std::string_view, std::string_view> separator_spellings[] = {
    {"|", "bar"}, {"\t", "tab"}, {"comma", ","}, {"semicolon", ";"}};
enum class DecimalMark : std::uint8_t { point, comma };
template <>
inline constexpr std::string_view names_of<DecimalMark> = ".|,";
/// What separates groups of three digits.
enum class ThousandsMark : std::uint8_t { none, comma, point, space, underscore };
template <>
inline constexpr std::string_view names_of<ThousandsMark> = "none|,|.|space|_";
/// How cells spell numbers and nothing.
struct CellText {
  DecimalMark decimal = DecimalMark::point;
  ThousandsMark thousands = ThousandsMark::none;
  /// Spellings of an empty cell, in every column; unset: the usual ones, only in columns of
  /// numbers.
  std::optional<std::vector<std::string>> missing;
  bool operator==(const CellText&) const = default;
};
/// Fields are made of columns.
struct TextTable {
  static constexpr std::string_view arrays = "";
  static constexpr FilesForm files{.is_table = false,
                                   .refusal = "the files of a table follow each other"};
  std::vector<std::string> columns;  // empty: the header names them
  bool header = false;               // the first row names the columns
  CellText cells;
  OnBad on_bad = OnBad::error;  // rows that cannot be read
  std::string cache;            // absolute: where prepared tables lie
  std::string tokenizer;        // absolute: the file of the function `tokens`; "": none
  bool operator==(const TextTable&) const = default;
};
struct CsvTable : TextTable {
  static constexpr std::string_view name = "csv";
  Separator separator = Separator::automatic;  // found in each file's first rows
  bool operator==(const CsvTable&) const = default;
};
struct TsvTable : TextTable {
  static constexpr std::string_view name = "tsv";
  bool operator==(const TsvTable&) const = default;
};
/// A JSON object a line; its keys are columns.
struct JsonLines : TextTable {
  static constexpr std::string_view name = "jsonl";
  bool operator==(const JsonLines&) const = default;
};
/// A line is a row of the one column `line`.
struct TextLines : TextTable {
  static constexpr std::string_view name = "lines";
  TextLines() { columns = {"line"}; }
  bool operator==(const TextLines&) const = default;
};
/// Pictures in folders, decoded when they are read.
struct ImageFiles {
  static constexpr std::string_view name = "images", arrays = "images|labels";
  static constexpr FilesForm files{.is_table = false, .refusal = "pictures lie in folders"};
  std::string labels;                // the list in each folder; "": a sub-folder is a class
  int channels = 3;                  // 1 or 3
  std::vector<std::int64_t> resize;  // height and width; empty: none
  std::int64_t resize_short = 0;     // length of the shorter side; 0: none
  std::int64_t center_crop = 0;      // height and width; 0: none
  bool scaled_decode = true;         // JPEGs that a resize makes much smaller
  OnBad on_bad = OnBad::error;       // pictures that cannot be read
  bool operator==(const ImageFiles&) const = default;
};
/// How token ids become samples: windows of one length, and the ids that follow each of theirs.
struct TokenWindows {
  std::int64_t length = 0;         // tokens of a window
  std::int64_t stride = 0;         // from the start of a window to the next; 0: the length
  std::int64_t shift = 1;          // from a token to its target
  std::int64_t document_end = -1;  // the id that ends a document; -1: none is known
  bool cross_documents = true;     // a window may have parts of several documents
  std::int64_t pad = 0;            // the id that fills up after the end of a document
  bool operator==(const TokenWindows&) const = default;

  std::int64_t step() const { return stride > 0 ? stride : length; }
};
enum class TokenElement : std::uint8_t { uint16, uint32 };
template <>
inline constexpr std::string_view names_of<TokenElement> = "uint16|uint32";
/// Files that hold only token ids, one after the other, like nanoGPT's train.bin.
struct TokenFiles {
  static constexpr std::string_view name = "tokens", arrays = "tokens|targets|mask";
  static constexpr FilesForm files{.is_table = false,
                                   .refusal = "files of tokens follow each other"};
  TokenElement element = TokenElement::uint16;
  std::int64_t vocabulary = 0;    // ids are below; 0: as the model says
  std::int64_t header_bytes = 0;  // in front of the ids of each file
  TokenWindows windows;
  bool operator==(const TokenFiles&) const = default;
};
enum class TextDocuments : std::uint8_t { files, lines };
template <>
inline constexpr std::string_view names_of<TextDocuments> = "files|lines";
/// Text as one stream of tokens, cut into windows.
struct TextFiles {
  static constexpr std::string_view name = "text", arrays = "tokens|targets|mask";
  static constexpr FilesForm files{.is_table = false, .refusal = "files of text follow each other"};
  static constexpr std::string_view characters = "characters", bytes = "bytes";
  std::string tokenizer;  // one of those two, or the absolute path of a tokenizer.json
  TextDocuments documents = TextDocuments::files;  // what is encoded at once
  TokenWindows windows;
  bool operator==(const TextFiles&) const = default;

  bool has_tokenizer_file() const { return tokenizer != characters && tokenizer != bytes; }
};
/// What becomes of a conversation that is longer than a sample.
enum class LongChat : std::uint8_t { cut, skip, error };
template <>
inline constexpr std::string_view names_of<LongChat> = "cut|skip|error";
/// How conversations become text.
struct ChatTemplateConfig {
  std::string name;  // one of all_chat_templates(); "": the texts below
  /// Messages of each role, with {content} in them; "": there is no such role.
  std::string system, user, assistant;
  bool operator==(const ChatTemplateConfig&) const = default;
};
/// Conversations, a JSON object a line, of which only answers are learned.
struct ChatFiles {
  static constexpr std::string_view name = "chat",
                                    arrays = "tokens|targets|mask|positions|attention";
  static constexpr FilesForm files{.is_table = false,
                                   .refusal = "files of conversations follow each other"};
  std::string tokenizer;  // absolute: a tokenizer.json
  ChatTemplateConfig style;
  std::optional<std::string> begin;  // the text before the first message; unset: the template's
  std::string system;                // for conversations that begin without one; "": none
  std::int64_t length = 0;           // tokens of a sample
  LongChat too_long = LongChat::cut;
  bool pack = false;            // several conversations in a sample
  std::int64_t pad = -1;        // the id that fills up; -1: that of the tokenizer
  Where pad_where = {};         // where its key is
  OnBad on_bad = OnBad::error;  // lines that are no conversations
  bool operator==(const ChatFiles&) const = default;
};
/// Samples that the program gives which trains, in place of files.
struct ProgramSamples {
  static constexpr std::string_view name = "program", arrays = "";
  static constexpr FilesForm files{.is_list = false,
                                   .is_table = false,
                                   .refusal = "the program that trains gives the samples",
                                   .fix = "leave it out"};
  bool operator==(const ProgramSamples&) const = default;
};
using DataKind =
    std::variant<IdxFiles, CifarFiles, NpzFiles, CsvTable, TsvTable, JsonLines, TextLines,
                 ImageFiles, TokenFiles, TextFiles, ChatFiles, ProgramSamples>;

struct ShuffleConfig {
  enum class Kind : std::uint8_t { none, full, buffer };
  Kind kind = Kind::full;
  std::int64_t buffer = 0;  // samples
  bool operator==(const ShuffleConfig&) const = default;
};

struct FieldFunctionKind;  // engine/data/functions/field_function.h
class FieldFunction;
/// One function of a field's `as` or `augment`.
struct Transform {
  const FieldFunctionKind* kind = nullptr;        // one of all_field_functions()
  std::shared_ptr<const FieldFunction> function;  // with its options, never null
  std::string text;                               // as written
  Where where;
  bool operator==(const Transform& other) const { return text == other.text; }
};

enum class OutOfRange : std::uint8_t { error, zero };
template <>
inline constexpr std::string_view names_of<OutOfRange> = "error|zero";
struct FieldConfig {
  std::string name;
  std::string from;  // the array of the data files; of a table the column, or "" where `stacked`
  std::vector<std::string> columns = {};  // columns of a table, at least one, in order
  bool stacked = false;                   // the columns make an axis
  std::vector<Transform> as;              // in order
  std::vector<Transform>
      augment;  // training only; act after the reshape and resize that `as` starts with
  /// What happens to ids that go straight into a lookup.
  OutOfRange out_of_range = OutOfRange::error;
  Where where;
  bool operator==(const FieldConfig&) const = default;
};

/// One entry per array, its name and its files, where `files` is a table (always for idx; never for
/// cifar); else one entry with an empty name, for files that name their arrays themselves.
struct ArrayFiles {
  std::string name;
  std::vector<std::string> paths;  // absolute
  Where where;
  bool operator==(const ArrayFiles&) const = default;
};
/// Training samples mixed with others; 0: not.
struct MixConfig {
  double mixup = 0, cutmix = 0;     // alpha of the Beta distribution that shares are drawn from
  std::vector<std::string> fields;  // empty: all
  bool operator==(const MixConfig&) const = default;
};
/// One of several sources that training mixes.
struct SourceConfig {
  std::vector<ArrayFiles> files;
  double weight = 1;  // share of its samples: weight / sum of weights
  Where where;
  bool operator==(const SourceConfig&) const = default;
};
/// What ends an epoch over several sources: one of them has no sample left, or all have given all.
enum class EpochEnd : std::uint8_t { first, last };
template <>
inline constexpr std::string_view names_of<EpochEnd> = "first|last";
enum class SamplerKind : std::uint8_t { shuffle, weighted, balanced };
template <>
inline constexpr std::string_view names_of<SamplerKind> = "shuffle|weighted|balanced";
/// How an epoch takes samples of the training data.
struct SamplerConfig {
  SamplerKind kind = SamplerKind::shuffle;
  std::string field;  // field with the weights or the classes
  std::vector<double>
      class_weights;         // weighted: the field has classes, and these are their weights
  std::int64_t samples = 0;  // that an epoch draws; 0: as many as there are
  Where where;
  bool operator==(const SamplerConfig&) const = default;
};
/// Batches of samples of about one length, filled up to that of their bucket.
struct BucketConfig {
  std::string field;     // whose samples are as long as their last value that is not pad
  std::int64_t pad = 0;  // what fills samples up
  std::vector<std::int64_t> lengths;  // ascending; empty: no buckets
  std::string dimension;              // the model's free dimension that is the length
  std::vector<std::string> fields;    // that are cut; empty: all that are as long as `field`
  Where where;
  bool operator==(const BucketConfig&) const = default;
};
struct SplitConfig {
  std::vector<ArrayFiles> files;
  bool operator==(const SplitConfig&) const = default;
};
struct DataConfig {
  COPIED_OUT_OF_LINE(DataConfig);

  DataKind kind = NpzFiles{};
  SplitConfig train, eval;
  double eval_fraction = 0;  // > 0: that part of train is held out instead of eval files
  /// Sources of train, which then hold its files; empty: there is one source.
  std::vector<SourceConfig> sources;
  EpochEnd epoch_end = EpochEnd::last;
  ShuffleConfig shuffle;            // for train
  SamplerConfig sampler;            // for train
  BucketConfig buckets;             // for train
  MixConfig mix;                    // for train
  std::vector<FieldConfig> fields;  // empty: every array, under its own name
  int workers = 1;                  // loader threads
  bool drop_last = false;
  Where where;
  bool operator==(const DataConfig&) const;

  std::string_view kind_name() const;
  /// Leaves out what acts only in training: samplers, weights of sources, buckets, mixing.
  void forget_training() {
    sources.clear();
    sampler = {};
    buckets = {};
    mix = {};
  }
  /// Null where the kind is no text table.
  const TextTable* table() const;
  TextTable* table() { return const_cast<TextTable*>(std::as_const(*this).table()); }
  /// Null where the kind is another one.
  const ImageFiles* images() const { return std::get_if<ImageFiles>(&kind); }
  const TokenFiles* tokens() const { return std::get_if<TokenFiles>(&kind); }
  const TextFiles* text() const { return std::get_if<TextFiles>(&kind); }
  const ChatFiles* chat() const { return std::get_if<ChatFiles>(&kind); }
  /// The path of the tokenizer.json that makes ids of text, "" in a table that names none; null
  /// where no tokenizer could.
  const std::string* tokenizer_path() const;
  std::string* tokenizer_path() {
    return const_cast<std::string*>(std::as_const(*this).tokenizer_path());
  }
  /// data.length, where samples are windows of that many tokens; 0 where they are not.
  std::int64_t window_length() const;
  bool is_of_program() const { return std::holds_alternative<ProgramSamples>(kind); }
};
void visit(KeyVisitor& v, ImageFiles& c);
void visit(KeyVisitor& v, TokenFiles& c);
void visit(KeyVisitor& v, TextFiles& c);
void visit(KeyVisitor& v, ChatFiles& c);
void visit(KeyVisitor& v, JsonLines& c);
void visit(KeyVisitor& v, TextLines& c);
/// How cells of csv and tsv files are written.
void visit_cells(KeyVisitor& v, CellText& c);
/// What all tables have: bad rows, where they are prepared, and their tokenizer.
void visit_rows(KeyVisitor& v, TextTable& c);
void visit(KeyVisitor& v, DataConfig& c);

/// What the fields are made of, in their order, each once.
std::vector<std::string> columns_of_fields(const DataConfig& data);

}  // namespace tandem
