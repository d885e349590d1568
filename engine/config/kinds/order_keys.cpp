#include "engine/config/kinds/order_keys.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/config/kinds/file_keys.h"

namespace tandem {
namespace {

constexpr double longest_bucket = 1 << 24;
constexpr std::size_t most_buckets = 64;  // each has programs of its own
constexpr double most_drawn = 1LL << 31;

KeyForm shuffle_form(ShuffleConfig& member) {
  return {string_value,
          [&](const Found& found) {
            if (const auto parsed = parse_shuffle(found.value.text))
              member = *parsed;
            else
              found.report("not a way to shuffle", "\"full\", \"none\" or \"buffer 1000\"",
                           describe(found.value));
          },
          [&] {
            if (member.kind == ShuffleConfig::Kind::buffer)
              return toml_string("buffer " + std::to_string(member.buffer));
            return toml_string(member.kind == ShuffleConfig::Kind::none ? "none" : "full");
          }};
}

/// The files of all sources are those of the training data, in their order.
void gather_files(const TableReader& table, DataConfig& c) {
  if (c.sources.empty()) {
    if (!table.find("files") && !c.is_of_program()) {
      table.report(table.where(), "files", "this key is missing", "", "",
                   "write files = [ … ], or sources = [ { files = [ … ] }, … ]");
    }
    return;
  }
  if (const ConfigValue* files = table.find("files")) {
    table.report(files->where, "files", "either files or sources");
    return;
  }
  std::set<std::string> known;
  for (const SourceConfig& source : c.sources) {
    for (const ArrayFiles& array : source.files) {
      auto found = std::find_if(c.train.files.begin(), c.train.files.end(),
                                [&](const ArrayFiles& a) { return a.name == array.name; });
      if (found == c.train.files.end())
        found = c.train.files.insert(found, {array.name, {}, array.where});
      for (const std::string& path : array.paths) {
        if (!known.insert(array.name + '\n' + path).second) {
          table.report(source.where, "sources", "a file is in two sources, or twice in one", "",
                       path, "raise the weight of its source");
        }
        found->paths.push_back(path);
      }
    }
  }
}

void check_sources(const TableReader& table, const DataConfig& c) {
  double sum = 0;
  for (const SourceConfig& source : c.sources) sum += source.weight;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    if (c.sources[i].weight > 0 && std::isfinite(sum)) continue;
    table.report(c.sources[i].where, "sources." + std::to_string(i) + ".weight", "out of range",
                 "above 0, with a sum that is a number", toml_number(c.sources[i].weight),
                 "leave out a source that is not to be read");
  }
  if (c.sources.size() > 1 && c.sampler.kind != SamplerKind::shuffle) {
    table.report(table.find("sampler")->where, "sampler",
                 "a sampler draws from all samples, whatever their source", "", "",
                 "weigh the sources, or the samples of one");
  }
  if (c.sources.empty() && table.find("epoch_end")) {
    table.report(table.find("epoch_end")->where, "epoch_end",
                 "there is only one source, so an epoch ends with it", "", "", "give sources");
  }
}

void check_sampler(const TableReader& table, SamplerConfig& c) {
  if (c.kind == SamplerKind::shuffle) {
    const std::string refusal = "not an option of shuffle";
    for (const char* key : {"field", "class_weights", "samples"}) {
      const ConfigValue* value = table.find(key);
      if (value && !table.leaves_out(key, table.find("kind"), refusal))
        table.report(value->where, key, refusal, "kind = \"weighted\"");
    }
    SamplerConfig none;
    none.where = c.where;
    c = none;
    return;
  }
  if (c.field.empty()) {
    table.report(table.where(), "field", "nothing says how samples are drawn",
                 c.kind == SamplerKind::balanced ? "a data field of classes"
                                                 : "a data field of weights, or of classes");
  }
  if (!c.class_weights.empty() && c.kind == SamplerKind::balanced) {
    table.report(table.find("class_weights")->where, "class_weights",
                 "balanced draws all classes alike", "", "", "kind = \"weighted\"");
  }
  const auto is_positive = [](double weight) { return weight > 0; };
  if (!c.class_weights.empty() &&
      std::none_of(c.class_weights.begin(), c.class_weights.end(), is_positive)) {
    table.report(table.find("class_weights")->where, "class_weights", "no class is ever drawn",
                 "a weight above 0");
  }
}

void visit_sampler(KeyVisitor& v, SamplerConfig& c) {
  v.place(c.where);
  v.key("kind", c.kind,
        "shuffle: each sample once; weighted: drawn with replacement by weight; balanced: all "
        "classes alike often");
  v.key("field", text_or_none(c.field), "data field with a weight, or a class, for each sample");
  v.key("class_weights", c.class_weights, by_default("(the field has weights)"),
        written_if(!c.class_weights.empty()),
        parts("[]", number_value, at_least(0), "weight of samples of this class"), at_least(0),
        "weights of samples by their class, 0, 1, …, which the field then has");
  v.key("samples", c.samples, between(0, most_drawn),
        "samples that an epoch draws; 0: as many as there are");
  v.when_read([&](const TableReader& table) { check_sampler(table, c); });
}

/// A list of whole numbers from 1 on.
KeyForm bucket_lengths(std::vector<std::int64_t>& member) {
  return {list_value,
          [&](const Found& found) {
            for (const ConfigValue& item : found.value.items) {
              if (item.kind == ConfigValue::Kind::integer) member.push_back(item.integer);
            }
            const bool ascends = std::adjacent_find(member.begin(), member.end(),
                                                    std::greater_equal<>()) == member.end();
            if (member.empty()) found.report("no length is named");
            if (!ascends) found.report("lengths do not ascend", "like [ 32, 64, 128 ]");
            if (member.size() > most_buckets) {
              found.report("too many buckets", "at most " + std::to_string(most_buckets),
                           std::to_string(member.size()));
            }
          },
          [&] {
            std::vector<std::string> texts;
            for (const std::int64_t length : member) texts.push_back(std::to_string(length));
            return toml_list(texts);
          }};
}

}  // namespace

void visit_order(KeyVisitor& train, DataConfig& c, const std::string& root) {
  train.tables(
      "sources", c.sources, "one source",
      [&](KeyVisitor& v, SourceConfig& source) {
        visit_files(v, source.files, c.kind, root, required, "as data.train.files");
        v.key("weight", source.weight, at_least(0),
              "its share of the samples is this, divided by the sum of the weights");
      },
      "files that are mixed by weight, in place of data.train.files");
  train.key("epoch_end", c.epoch_end, written_if(!c.sources.empty()),
            "for several sources. first: an epoch ends when one has no sample left; last: when all "
            "samples of all sources were read, some of them several times");
  train.key("shuffle", shuffle_form(c.shuffle),
            "\"full\", \"none\" or \"buffer N\": a new order every epoch");
  train.table(
      "sampler", [&](KeyVisitor& v) { visit_sampler(v, c.sampler); },
      written_if(c.sampler.kind != SamplerKind::shuffle), on_one_line,
      "how an epoch takes samples");
  train.when_read([&](const TableReader& table) {
    gather_files(table, c);
    check_sources(table, c);
    const ConfigValue* shuffle = table.find("shuffle");
    if (shuffle != nullptr && c.sampler.kind != SamplerKind::shuffle &&
        !(c.shuffle == ShuffleConfig{})) {
      table.report(shuffle->where, "shuffle", "a sampler that draws has no order to shuffle", "",
                   "", "leave shuffle out, or the sampler");
    }
  });
}

void visit_buckets(KeyVisitor& v, BucketConfig& c) {
  v.place(c.where);
  v.key("field", c.field, required,
        "data field whose samples are as long as their last value that is not `pad`");
  v.key("lengths", bucket_lengths(c.lengths), required,
        parts("[]", integer_value, between(1, longest_bucket), "a length"),
        "ascending; the last one is the greatest length of the field's samples");
  v.key("dimension", c.dimension, required,
        "name of the model's free dimension that is the length");
  v.key("pad", c.pad, "the value that pads samples of the field");
  v.key("fields", c.fields, by_default("(all that are as long as `field`)"),
        written_if(!c.fields.empty()), parts("[]", string_value, "a data field"),
        "fields that are cut to the length, along their first axis");
}

}  // namespace tandem
