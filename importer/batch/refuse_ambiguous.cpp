#include "importer/batch/refuse_ambiguous.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "importer/batch/follow_traits.h"
#include "importer/batch/old_batch.h"
#include "importer/batch/refuse_regrouped.h"
#include "importer/batch/sample_numbers.h"
#include "importer/batch/sample_totals.h"
#include "importer/file/initializers.h"
#include "importer/file/onnx_content.h"

namespace tandem::importer {
namespace {

using Total = SampleTraits::Total;

constexpr const char* one_iteration =
    "a loop of one iteration makes one result of all samples, in a file with a batch of 1: the "
    "file does not show whether its iterations count the samples";
constexpr const char* one_part =
    "a sequence has one part in a file with a batch of 1: the file does not show whether its parts "
    "count the samples";

/// Marks a sequence; whether anything depends on it shows where a tensor is made of it.
void mark_parts(Term& sequence) {
  sequence.samples.total = Total::sum;
  sequence.samples.summed = std::make_shared<const Shape>(Shape{1});
}

class Check {
 public:
  Check(Session& session, Scope& scope, const onnx::NodeProto& node, const std::string& path)
      : context_(session, scope, node, 0, path), node_(node), batch_(session.old_batch->batch) {
    for (const std::string& name : node.input()) operands_.push_back(seen(session, scope, name));
    for (const std::string& name : node.output()) {
      outputs_.push_back(seen(session, scope, name));
      if (outputs_.back().has_changed()) follows_ = true;
    }
  }

  void run() {
    if (operands_.empty() || outputs_.empty()) return;
    scaled_total();
    sorted();
    if (batch_ != 1) return;
    added_total();
    refuse_regrouped(context_, operands_, outputs_[0]);
    lookup();
    part_of_the_batch();
    written_into_one_sample();
    broadcast();
    one_hot();
    split_into_samples();
    taken_from_a_sequence();
  }

 private:
  [[noreturn]] void fail(const std::string& what, const char* readings) const {
    context_.fail(fmt::format("{} a batch of {}: {}", what, batch_, readings));
  }

  bool is_op(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), node_.op_type()) != names.end();
  }

  void lookup() {
    const bool is_unclear =
        sample_lookup(context_, *context_.session().old_batch) == SampleLookup::unclear;
    if (!is_unclear && !chooses_samples() && !writes_to_samples()) return;
    fail("the indices look along the samples of a file with",
         "the file does not show whether they mean their own sample or any of them");
  }

  // x[i] with as many constants i as samples: in another order, perhaps. x[arange(B), 2] is no
  // such.
  bool chooses_samples() const {
    if (!is_op({"Gather", "GatherND"}) || operands_.size() < 2 || !follows_) return false;
    const Seen &x = operands_[0], &indices = operands_[1];
    if (!x.has_changed() || !indices.is_tensor || !indices.term->constant) return false;
    if (indices.term->samples.numbered || x.term->samples.placed) return false;
    std::int64_t axis = context_.integer("batch_dims", 0);
    if (is_op({"Gather"})) {
      axis = context_.axis(context_.integer("axis", 0), context_.rank(0));
    } else if (indices.before->empty() || indices.before->back() != 1) {
      return false;  // the others choose something in each sample
    }
    return x.changed[0] == axis && (*x.before)[static_cast<std::size_t>(axis)] == 1;
  }

  // Zeros for all samples, of which constant indices choose some.
  bool writes_to_samples() const {
    if (!is_op({"Scatter", "ScatterElements"}) || operands_.size() < 2) return false;
    const Seen &data = operands_[0], &indices = operands_[1];
    if (!data.is_unchanged() || !indices.is_tensor || indices.term->samples.numbered) return false;
    const std::int64_t axis = context_.axis(context_.integer("axis", 0), context_.rank(0));
    const Ints& changed = outputs_[0].changed;
    return std::find(changed.begin(), changed.end(), axis) != changed.end();
  }

  // x[0], x[-1:]: the sample, or the first one of many.
  void part_of_the_batch() const {
    if (!is_op({"Gather", "GatherND", "GatherElements", "Slice"})) return;
    if (!operands_[0].has_changed() || follows_ || !outputs_[0].is_tensor) return;
    fail("it takes one place along the samples of a file with",
         "the file does not show whether it means the sample that there is or this one of many");
  }

  void written_into_one_sample() const {
    if (!is_op({"Scatter", "ScatterElements", "ScatterND"}) || follows_) return;
    const bool any = std::any_of(operands_.begin(), operands_.end(),
                                 [](const Seen& x) { return x.has_changed(); });
    if (!any) return;
    fail("what each sample writes goes into one tensor of a file with",
         "the file does not show whether each sample has its own");
  }

  void broadcast() const {
    if (!follows_ || !outputs_[0].is_tensor) return;
    if (!is_element_wise(node_) && !is_op({"Concat", "Expand"})) return;
    const std::size_t rank = outputs_[0].before->size();
    for (const Seen& x : operands_) {
      if (!x.is_unchanged()) continue;
      std::size_t shared = 0;  // axes of samples that its extents of 1 are broadcast along
      for (const std::int64_t axis : outputs_[0].changed) {
        const std::size_t distance = rank - static_cast<std::size_t>(axis);
        const Shape& own = x.term->type.shape;
        if (own.size() < distance || own[own.size() - distance] != 1) continue;
        ++shared;
        if (x.term->samples.random)
          fail("random numbers were drawn for",
               "the file does not show whether each sample has its own");
        if (x.term->samples.cut == distance)
          fail("the first entries of a longer tensor meet the samples of",
               "the file does not show whether there is one for each sample or one for all");
      }
      if (shared > 1 && x.term->constant)
        fail("a constant of one entry for each pair of samples was made for",
             "an identity matrix, for instance, is 1 there");
    }
  }

  // A number of classes that is the batch's.
  void one_hot() const {
    if (!is_op({"OneHot"}) || !operands_[0].has_changed() || operands_.size() < 2) return;
    const Seen& depth = operands_[1];
    if (!depth.is_tensor || !depth.term->constant || depth.term->constant->number(0) != 1) return;
    fail("it has one class in a file with",
         "the file does not show whether that counts the samples or the classes");
  }

  // Splits along the axis of the samples, of extent 1 in the file: a single part is either the
  // first of split(1) or all of chunk(batch).
  void split_into_samples() {
    if (!is_op({"Split", "SplitToSequence"}) || !operands_[0].has_changed()) return;
    const std::int64_t rank = context_.rank(0);
    const auto axis = static_cast<std::size_t>(context_.axis(context_.integer("axis", 0), rank));
    if ((*operands_[0].before)[axis] != 1 || operands_[0].term->type.shape[axis] == 1) return;
    if (is_op({"Split"}) && node_.output_size() == 1)
      fail("it has one part along the samples of a file with",
           "the file does not show whether that is the first sample or all of them");
    const auto made = context_.scope().names.find(node_.output(0));
    if (made == context_.scope().names.end() || !made->second.sequence) return;
    const std::vector<Term>& parts = *made->second.sequence;
    if (parts.size() > 1) mark_parts(made->second);
  }

  // The one part of a sequence: of a split, or of a loop of one iteration. Bodies of loops take
  // each part of a split in its turn.
  void taken_from_a_sequence() const {
    if (!is_op({"ConcatFromSequence", "SequenceAt"}) || operands_[0].term == nullptr) return;
    const Term& sequence = *operands_[0].term;
    if (!sequence.sequence || sequence.samples.total == Total::none) return;
    const bool is_from_outside = context_.scope().names.count(node_.input(0)) == 0;
    if (is_from_outside && sequence.sequence->size() > 1) return;
    if (outputs_[0].is_unchanged()) context_.fail(one_part);
  }

  // sum / B and mean * B, with the batch as a number.
  void scaled_total() const {
    if (!is_op({"Div", "Mul"}) || operands_.size() != 2) return;
    const bool divides = is_op({"Div"});
    for (std::size_t i = 0; i < (divides ? 1u : 2u); ++i) {
      const Seen &total = operands_[i], &other = operands_[1 - i];
      if (!total.is_tensor || total.term->samples.total == Total::none) continue;
      if (!other.is_tensor || !other.term->constant) continue;
      const std::optional<double> number = single_number(*other.term->constant);
      if (!number) continue;
      if (!may_count_samples(total.term->samples, divides, *number, batch_)) continue;
      context_.fail(
          fmt::format("a {} over the samples is {} by {}, which may count the samples of the batch "
                      "of {} with which the file was exported",
                      total.term->samples.total == Total::sum ? "sum" : "mean",
                      divides ? "divided" : "multiplied", *number, batch_));
    }
  }

  // x - sum(x) / B: exporters leave a division by 1 out.
  void added_total() const {
    if (!is_op({"Add", "Sub"}) || operands_.size() != 2) return;
    for (std::size_t i = 0; i < 2; ++i) {
      const Seen &total = operands_[i], &other = operands_[1 - i];
      if (!total.is_unchanged() || total.term->samples.total != Total::sum) continue;
      if (!other.has_changed() || other.term->samples.total != Total::none) continue;
      fail("a sum over the samples meets single samples in a file with",
           "the file does not show whether it was divided by their number");
    }
  }

  // A sort is exported as the largest n of n samples.
  void sorted() const {
    if (!is_op({"TopK"}) || !operands_[0].has_changed() || follows_) return;
    const Shape &x = *operands_[0].before, &y = *outputs_[0].before;
    const auto axis = static_cast<std::size_t>(operands_[0].changed[0]);
    if (!outputs_[0].is_tensor || x[axis] != y[axis]) return;
    fail(fmt::format("it takes the largest {} along the samples of a file with", y[axis]),
         "the file does not show whether it orders all samples or chooses as many of them");
  }

  static std::optional<double> single_number(const HostTensor& tensor) {
    if (tensor.type().elements() != 1) return std::nullopt;
    return tensor.number(0);
  }

  NodeContext context_;
  const onnx::NodeProto& node_;
  const std::int64_t batch_;
  std::vector<Seen> operands_, outputs_;
  bool follows_ = false;  // any output
};

}  // namespace

void refuse_ambiguous(Session& session, Scope& scope, const onnx::NodeProto& node,
                      const std::string& path) {
  if (!domain_of(node.domain()).empty()) return;
  Check(session, scope, node, path).run();
}

void refuse_one_iteration(Session& session, Scope& scope, const onnx::NodeProto& node,
                          const std::string& path) {
  const bool is_loop = domain_of(node.domain()).empty() && node.op_type() == "Loop";
  if (!is_loop || session.old_batch->batch != 1 || node.input_size() == 0) return;
  const auto follows = [&](const std::string& name) {
    return seen(session, scope, name).has_changed();
  };
  const std::vector<std::string> reads = reads_of(node);
  if (std::none_of(reads.begin(), reads.end(), follows)) return;
  if (std::any_of(node.output().begin(), node.output().end(), follows)) return;
  const Term* count = scope.find(node.input(0));
  const bool is_once = count != nullptr && count->constant &&
                       count->constant->type().elements() == 1 && count->constant->number(0) == 1;
  for (const std::string& name : node.output()) {
    const auto at = scope.names.find(name);
    if (at == scope.names.end()) continue;
    if (at->second.sequence && at->second.sequence->size() == 1) mark_parts(at->second);
    const Seen y = seen(session, scope, name);
    if (!is_once || !y.is_tensor || !is_float(y.term->type.dtype)) continue;
    NodeContext(session, scope, node, 0, path).fail(one_iteration);
  }
}

void refuse_ambiguous_output(const Session& session, const std::string& name, const Term& term) {
  const BatchRecord* old = session.old_batch;
  if (old == nullptr || old->batch != 1 || term.samples.total != Total::sum) return;
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = "the output is a sum over the samples of a file with a batch of 1: the "
                            "file does not show whether it was divided by their number",
                 .path = name,
                 .fix = fixed_batch_fix(*old)});
}

}  // namespace tandem::importer
