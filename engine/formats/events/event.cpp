#include "engine/formats/events/event.h"

#include "engine/formats/events/wire.h"

namespace tandem {
namespace {

// Numbers of fields in event.proto and summary.proto.
namespace field {
constexpr int wall_time = 1, step = 2, file_version = 3, graph_def = 4, summary = 5,
              session_log = 7;                                      // Event
constexpr int status = 1;                                           // SessionLog
constexpr int value = 1;                                            // Summary
constexpr int tag = 1, simple_value = 2, histo = 5;                 // Summary.Value
constexpr int min = 1, max = 2, num = 3, sum = 4, sum_squares = 5;  // HistogramProto
constexpr int bucket_limit = 6, bucket = 7;                         // HistogramProto
}  // namespace field

constexpr std::int64_t session_start = 1;  // SessionLog.SessionStatus.START

WireMessage event_at(const EventTime& time) {
  WireMessage event;
  event.number(field::wall_time, time.wall);
  if (time.step != 0) event.integer(field::step, time.step);
  return event;
}

}  // namespace

std::string version_event(double wall) {
  return event_at({wall, 0}).bytes(field::file_version, "brain.Event:2").text();
}

std::string start_event(const EventTime& time) {
  WireMessage log;
  log.integer(field::status, session_start);
  return event_at(time).message(field::session_log, log).text();
}

std::string scalars_event(const EventTime& time,
                          const std::vector<std::pair<std::string, double>>& scalars) {
  WireMessage summary;
  for (const auto& [tag, number] : scalars) {
    WireMessage value;
    value.bytes(field::tag, tag).number(field::simple_value, static_cast<float>(number));
    summary.message(field::value, value);
  }
  return event_at(time).message(field::summary, summary).text();
}

std::string histogram_event(const EventTime& time, std::string_view tag,
                            const Histogram& histogram) {
  std::vector<double> limits, values;
  for (const Histogram::Bucket& bucket : histogram.buckets()) {
    limits.push_back(bucket.limit);
    values.push_back(bucket.values);
  }
  WireMessage numbers;
  numbers.number(field::min, histogram.least())
      .number(field::max, histogram.greatest())
      .number(field::num, static_cast<double>(histogram.count()))
      .number(field::sum, histogram.sum())
      .number(field::sum_squares, histogram.sum_of_squares())
      .numbers(field::bucket_limit, limits)
      .numbers(field::bucket, values);
  WireMessage value, summary;
  value.bytes(field::tag, tag).message(field::histo, numbers);
  summary.message(field::value, value);
  return event_at(time).message(field::summary, summary).text();
}

std::string graph_event(double wall, std::string_view graph) {
  return event_at({wall, 0}).bytes(field::graph_def, graph).text();
}

EventFacts facts_of_event(std::string_view event) {
  EventFacts facts;
  WireReader fields(event);
  while (const auto part = fields.next()) {
    if (part->field == field::step && part->type == 0)
      facts.step = static_cast<std::int64_t>(part->integer);
    if (part->field == field::session_log) facts.is_start = true;
    if (part->field == field::graph_def) facts.is_graph = true;
    if (part->field != field::summary || part->type != 2) continue;
    WireReader values(part->bytes);
    const auto first = values.next();
    if (!first || first->field != field::value) continue;
    WireReader inside(first->bytes);
    const auto tag = inside.next();
    if (tag && tag->field == field::tag) facts.tag = tag->bytes;
  }
  return facts;
}

}  // namespace tandem
