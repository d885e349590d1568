// The configuration of a training as structs, one for each table of train.toml: `make docs` writes this file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tandem::api::inline v1 {

/// A length in optimizer steps, in epochs of the training data or in seconds of wall-clock time.
struct Duration {
  enum class Unit : std::uint8_t { steps, epochs, seconds };
  double value = 0;
  Unit unit = Unit::steps;
  static constexpr Duration steps(std::int64_t count) { return {static_cast<double>(count)}; }
  static constexpr Duration epochs(double count) { return {count, Unit::epochs}; }
  static constexpr Duration seconds(double count) { return {count, Unit::seconds}; }
  static constexpr Duration minutes(double count) { return seconds(60 * count); }
  bool operator==(const Duration&) const = default;
};

// Members have the names of the keys; docs/train_toml.md says what each means, with its default and its range. A member
// that is not set, and a list without items, leaves the key out. `kind` is a struct with the options that this kind
// has. Words that C++ reserves end in "_".
// clang-format off
template <class T> using Maybe = std::optional<T>;
/// Files in order, or those of each array by its name.
using Files = std::variant<std::vector<std::string>, std::map<std::string, std::vector<std::string>>>;

enum class ModelBatchNorm { train, inference, file };
struct ModelBatchNormSettings { Maybe<std::string> at; Maybe<ModelBatchNorm> mode; };  // model.batch_norm[]
enum class ModelRandom { known, train, always };
struct ModelRandomSettings { Maybe<std::string> at; Maybe<ModelRandom> mode; };  // model.random[]
struct ModelSettings {  // model: the ONNX file, or a table with the keys below
  Maybe<std::string> file; std::map<std::string, std::int64_t> bind;
  Maybe<std::variant<ModelBatchNorm, std::vector<ModelBatchNormSettings>>> batch_norm;
  Maybe<std::variant<ModelRandom, std::vector<ModelRandomSettings>>> random; Maybe<bool> sync_batch_norm; };

enum class RunDevice { auto_, cpu, gpu }; enum class RunBatchSize { auto_ };
struct FreezeSettings { Maybe<std::string> at; Maybe<Duration> until, from; };  // parameters.freeze[]
enum class LoadMissing { error, keep }; enum class LoadUnexpected { error, ignore };
enum class LoadOtherShape { error, keep };
struct LoadSettings {  // parameters.load[]
  Maybe<std::string> from, at, strip; std::vector<std::vector<std::string>> rename; Maybe<std::string> add, transpose;
  Maybe<LoadMissing> missing; Maybe<LoadUnexpected> unexpected; Maybe<LoadOtherShape> other_shape; };
enum class InitKind { zeros, ones, constant, normal, uniform, kaiming_uniform, kaiming_normal, xavier_uniform,
  xavier_normal };
/// parameters.init[]
struct InitSettings { Maybe<std::string> at; Maybe<InitKind> kind; Maybe<double> value, mean, std, low, high; };
struct HeadSettings { Maybe<std::int64_t> classes; Maybe<std::string> at; };  // parameters.head[]
struct LoraSettings {  // parameters.lora[]
  Maybe<std::string> at; Maybe<std::int64_t> rank; Maybe<double> alpha, dropout; Maybe<bool> rslora, dora; };
/// parameters.shape[]
struct ShapeSettings { Maybe<std::string> at; Maybe<std::variant<std::int64_t, std::string>> rows; };
enum class StorageKind { float32, split_bfloat16, float16, bfloat16, int8, int4, nf4 };
/// parameters.storage[]
struct StorageSettings { Maybe<std::string> at; Maybe<StorageKind> kind; Maybe<std::int64_t> block; };
struct FixedRowSettings { Maybe<std::string> at; std::vector<std::int64_t> rows; };  // parameters.fixed_rows[]
struct ParametersSettings {  // parameters: which parameters train, and what they start from
  std::vector<FreezeSettings> freeze; std::vector<LoadSettings> load; std::vector<InitSettings> init;
  std::vector<HeadSettings> head; std::vector<LoraSettings> lora; std::vector<std::string> train;
  std::vector<ShapeSettings> shape; std::vector<StorageSettings> storage; std::vector<FixedRowSettings> fixed_rows; };

/// The formulas of loss.terms[].kind: docs/losses.md.
struct SoftmaxCrossEntropyLoss {
  Maybe<std::string> logits, labels, sample_weights; Maybe<std::int64_t> ignore_index;
  std::vector<double> class_weights; Maybe<double> label_smoothing; };
struct MseLoss { Maybe<std::string> predictions, targets, sample_weights; };
struct BinaryCrossEntropyLoss { Maybe<std::string> logits, labels, sample_weights; std::vector<double> pos_weight; };
struct SumOfSquaresLoss { Maybe<std::string> of; };
struct NllLoss {
  Maybe<std::string> labels, log_probabilities, sample_weights; Maybe<std::int64_t> ignore_index;
  std::vector<double> class_weights; };
struct SoftmaxFocalLoss {
  Maybe<std::string> logits, labels, sample_weights; Maybe<std::int64_t> ignore_index;
  std::vector<double> class_weights; Maybe<double> gamma; };
struct SigmoidFocalLoss { Maybe<std::string> logits, labels, sample_weights; Maybe<double> gamma, alpha; };
struct HingeLoss { Maybe<std::string> labels, predictions, sample_weights; Maybe<double> margin; };
struct MultiMarginLoss { Maybe<std::string> labels, predictions, sample_weights; Maybe<double> margin, p; };
struct MaeLoss { Maybe<std::string> predictions, targets, sample_weights; };
struct HuberLoss { Maybe<std::string> predictions, targets, sample_weights; Maybe<double> delta; };
struct SmoothL1Loss { Maybe<std::string> predictions, targets, sample_weights; Maybe<double> beta; };
struct KlDivLoss { Maybe<std::string> targets, log_probabilities, sample_weights; Maybe<bool> log_target; };
struct GaussianKlLoss { Maybe<std::string> mu, log_var, sample_weights; };
struct CosineEmbeddingLoss { Maybe<std::string> labels, input1, input2, sample_weights; Maybe<double> margin; };
struct TripletMarginLoss {
  Maybe<std::string> anchor, positive, negative, sample_weights; Maybe<double> margin, p, eps; Maybe<bool> swap; };
enum class LossTermSimilarity { cosine, dot };
struct InfoNceLoss {
  Maybe<std::string> anchor, positive, sample_weights; Maybe<double> temperature; Maybe<LossTermSimilarity> similarity;
  Maybe<bool> symmetric; };
enum class LossTermActivation { sigmoid, softmax };
struct DiceLoss {
  Maybe<std::string> logits, labels, sample_weights; Maybe<LossTermActivation> activation; Maybe<bool> squared_pred;
  Maybe<double> smooth_nr, smooth_dr; };
struct CtcLoss {
  Maybe<std::string> logits, labels, input_lengths, target_lengths, sample_weights;
  Maybe<std::int64_t> ignore_index, blank; Maybe<bool> time_first, zero_infinity; };
struct DistillationLoss {
  Maybe<std::string> logits, teacher_logits, sample_weights; Maybe<double> temperature; Maybe<std::int64_t> axis; };
using Loss = std::variant<SoftmaxCrossEntropyLoss, MseLoss, BinaryCrossEntropyLoss, SumOfSquaresLoss, NllLoss,
    SoftmaxFocalLoss, SigmoidFocalLoss, HingeLoss, MultiMarginLoss, MaeLoss, HuberLoss, SmoothL1Loss, KlDivLoss,
    GaussianKlLoss, CosineEmbeddingLoss, TripletMarginLoss, InfoNceLoss, DiceLoss, CtcLoss, DistillationLoss>;
enum class LossTermReduction { mean, sum, batchmean };
struct LossTermSettings {  // loss.terms[]
  Maybe<std::string> name; Maybe<Loss> kind; Maybe<double> weight; Maybe<LossTermReduction> reduction; };
struct LossSettings { Maybe<std::string> output; std::vector<LossTermSettings> terms; };  // loss: the loss

struct DistillationSettings {  // distillation: a trained model that this one learns from, in addition to its labels
  Maybe<std::string> teacher, weights; Maybe<double> temperature, weight;
  std::map<std::string, std::string> at, inputs; };

/// The rules of optimizer.kind: docs/guide/optimizers.md.
struct Sgd { Maybe<double> lr, weight_decay, momentum, dampening; Maybe<bool> nesterov; };
enum class OptimizerEpsilonForm { pytorch, onnx };
struct Adam {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon;
  Maybe<OptimizerEpsilonForm> epsilon_form; Maybe<bool> bias_correction; };
struct AdamW {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon;
  Maybe<OptimizerEpsilonForm> epsilon_form; Maybe<bool> bias_correction; };
struct LazyAdam {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon;
  Maybe<OptimizerEpsilonForm> epsilon_form; Maybe<bool> bias_correction; };
struct Adagrad { Maybe<double> lr, weight_decay, eps, epsilon, lr_decay, initial_accumulator; };
struct RowwiseAdagrad { Maybe<double> lr, weight_decay, eps, epsilon, lr_decay, initial_accumulator; };
enum class OptimizerDialect { mcmahan, tensorflow, mindspore };
struct Ftrl {
  Maybe<double> lr, initial_accumulator, l1, l2, beta, l2_shrinkage, lr_power; Maybe<OptimizerDialect> dialect; };
struct GroupFtrl {
  Maybe<double> lr, initial_accumulator, l1, l2, beta, l2_shrinkage, lr_power; Maybe<OptimizerDialect> dialect;
  Maybe<double> l21; };
struct Lamb {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon;
  Maybe<bool> bias_correction, always_adapt; Maybe<double> trust_clip; };
struct Momentum { Maybe<double> lr, weight_decay, momentum; Maybe<bool> nesterov; Maybe<double> beta; };
struct RmsProp { Maybe<double> lr, weight_decay, momentum, eps, epsilon, alpha; Maybe<bool> centered; };
struct Adadelta { Maybe<double> lr, weight_decay, eps, epsilon, rho; };
struct Adamax { Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon; };
struct NAdam {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon, momentum_decay;
  Maybe<bool> decoupled_weight_decay; };
struct RAdam {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon;
  Maybe<bool> decoupled_weight_decay; };
struct Lion { Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2; };
struct Adafactor { Maybe<double> lr, weight_decay, beta2_decay, eps1, eps2, d; };
enum class OptimizerAdjustLrFn { original, match_rms_adamw, spectral_unclamped };
struct Muon {
  Maybe<double> lr, weight_decay, momentum; Maybe<bool> nesterov; Maybe<double> eps, epsilon;
  std::vector<double> ns_coefficients; Maybe<double> ns_a, ns_b, ns_c, ns_steps;
  Maybe<OptimizerAdjustLrFn> adjust_lr_fn; Maybe<bool> flatten; };
struct ScheduleFreeAdamW {
  Maybe<double> lr, weight_decay; std::vector<double> betas;
  Maybe<double> beta1, beta2, eps, epsilon, r, weight_lr_power; };
struct Adam8bit {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon;
  Maybe<OptimizerEpsilonForm> epsilon_form; Maybe<bool> bias_correction; };
struct AdamW8bit {
  Maybe<double> lr, weight_decay; std::vector<double> betas; Maybe<double> beta1, beta2, eps, epsilon;
  Maybe<OptimizerEpsilonForm> epsilon_form; Maybe<bool> bias_correction; };
using Optimizer = std::variant<Sgd, Adam, AdamW, LazyAdam, Adagrad, RowwiseAdagrad, Ftrl, GroupFtrl, Lamb, Momentum,
    RmsProp, Adadelta, Adamax, NAdam, RAdam, Lion, Adafactor, Muon, ScheduleFreeAdamW, Adam8bit, AdamW8bit>;
/// The shapes of optimizer.schedule.kind.
struct ConstantSchedule { };
struct CosineSchedule { Maybe<double> final; };
struct StepSchedule { Maybe<Duration> step_size; Maybe<double> gamma; };
struct LinearSchedule { Maybe<double> final; };
struct MultistepSchedule { Maybe<double> gamma; std::vector<Duration> milestones; };
struct ExponentialSchedule { Maybe<double> gamma; Maybe<Duration> period; };
struct PolynomialSchedule { Maybe<double> final, power; };
struct InverseSquareRootSchedule { Maybe<Duration> timescale; };
struct CosineRestartsSchedule { Maybe<double> final; Maybe<Duration> period; Maybe<std::int64_t> multiplier; };
enum class ScheduleAnneal { cos, linear };
struct OneCycleSchedule {
  Maybe<double> pct_start, div_factor, final_div_factor; Maybe<ScheduleAnneal> anneal; Maybe<bool> three_phase; };
enum class ScheduleThresholdMode { rel, abs };
struct PlateauSchedule {
  Maybe<std::string> metric; Maybe<double> factor; Maybe<std::int64_t> patience; Maybe<double> threshold;
  Maybe<ScheduleThresholdMode> threshold_mode; Maybe<std::int64_t> cooldown; Maybe<double> min_lr, eps; };
using Schedule = std::variant<ConstantSchedule, CosineSchedule, StepSchedule, LinearSchedule, MultistepSchedule,
    ExponentialSchedule, PolynomialSchedule, InverseSquareRootSchedule, CosineRestartsSchedule, OneCycleSchedule,
    PlateauSchedule>;
struct SchedulePartSettings { Maybe<Schedule> kind; Maybe<Duration> length, warmup; };  // optimizer.schedule.parts[]
/// optimizer.schedule: the learning rate over the run
struct ScheduleSettings { Maybe<Schedule> kind; Maybe<Duration> warmup; std::vector<SchedulePartSettings> parts; };
struct OptimizerGroupSettings {  // optimizer.groups[]: a selector and the options that differ, kind included
  Maybe<std::string> at; Maybe<Optimizer> kind; ScheduleSettings schedule;
  Maybe<double> clip_norm, clip_value, clip_adaptive; };
/// optimizer.ema: an exponential moving average of the weights
struct OptimizerEmaSettings { Maybe<std::string> at; Maybe<double> decay; Maybe<Duration> start; Maybe<bool> warmup; };
/// optimizer.swa: the mean of the weights at several times (stochastic weight averaging)
struct OptimizerSwaSettings { Maybe<std::string> at; Maybe<Duration> start, every; };
/// optimizer.lookahead: slow weights, which the trained ones go back to (Zhang et al. 2019)
struct OptimizerLookaheadSettings { Maybe<std::string> at; Maybe<std::int64_t> k; Maybe<double> alpha; };
struct OptimizerSettings {  // optimizer: how parameters are updated
  Maybe<Optimizer> kind; std::vector<OptimizerGroupSettings> groups; ScheduleSettings schedule;
  Maybe<double> clip_norm, clip_value, clip_adaptive, clip_adaptive_eps, layer_decay; Maybe<OptimizerEmaSettings> ema;
  Maybe<OptimizerSwaSettings> swa; Maybe<OptimizerLookaheadSettings> lookahead; };

enum class PrecisionCompute { float32, bfloat16, float16 }; enum class PrecisionLossScale { dynamic };
struct PrecisionSettings {  // precision: element types of the computation
  Maybe<PrecisionCompute> compute; Maybe<std::variant<double, PrecisionLossScale>> loss_scale;
  Maybe<std::int64_t> growth_interval; std::vector<std::string> keep_float32; Maybe<bool> tf32; };

enum class DataKind { idx, cifar, npz, csv, tsv, jsonl, lines, images, tokens, text, chat, program };
enum class DataSeparator { auto_, comma, semicolon, tab, bar }; enum class DataDecimal { point, comma };
enum class DataThousands { none, comma, point, space, underscore }; enum class DataOnBad { error, skip };
enum class DataElement { uint16, uint32 }; enum class DataDocuments { files, lines };
enum class DataTemplateName { chatml, llama3, gemma, phi3, mistral, mistral_v3, mistral_tekken };
/// data.template: how a conversation becomes text
struct DataTemplateSettings { Maybe<DataTemplateName> name; Maybe<std::string> system, user, assistant; };
enum class DataTooLong { cut, skip, error };
struct DataTrainSourceSettings { Maybe<Files> files; Maybe<double> weight; };  // data.train.sources[]
enum class DataTrainEpochEnd { first, last }; enum class DataTrainSamplerKind { shuffle, weighted, balanced };
struct DataTrainSamplerSettings {  // data.train.sampler: how an epoch takes samples
  Maybe<DataTrainSamplerKind> kind; Maybe<std::string> field; std::vector<double> class_weights;
  Maybe<std::int64_t> samples; };
struct DataTrainSettings {  // data.train: the training data
  Maybe<Files> files; std::vector<DataTrainSourceSettings> sources; Maybe<DataTrainEpochEnd> epoch_end;
  Maybe<std::string> shuffle; DataTrainSamplerSettings sampler; };
struct DataEvalSettings { Maybe<Files> files; Maybe<double> fraction; };  // data.eval: the held-out data
enum class DataFieldOutOfRange { error, zero };
/// data.fields.*: an array's name, or a table with the keys below
struct DataFieldSettings { std::vector<std::string> from, as, augment; Maybe<DataFieldOutOfRange> out_of_range; };
/// data.mix: training samples mixed with others
struct DataMixSettings { Maybe<double> mixup, cutmix; std::vector<std::string> fields; };
/// data.buckets: training batches of samples of about one length, padded to it and not to the longest
struct DataBucketsSettings {
  Maybe<std::string> field; std::vector<std::int64_t> lengths; Maybe<std::string> dimension; Maybe<std::int64_t> pad;
  std::vector<std::string> fields; };
struct DataSettings {  // data: what is trained on
  Maybe<DataKind> kind; Maybe<std::string> root; Maybe<DataSeparator> separator; Maybe<DataDecimal> decimal;
  Maybe<DataThousands> thousands; std::vector<std::string> columns; Maybe<bool> header;
  Maybe<std::vector<std::string>> missing; Maybe<DataOnBad> on_bad; Maybe<std::string> cache, tokenizer, labels;
  Maybe<std::int64_t> channels; std::vector<std::int64_t> resize; Maybe<std::int64_t> resize_short, center_crop;
  Maybe<bool> scaled_decode; Maybe<DataElement> element;
  Maybe<std::int64_t> vocabulary, header_bytes, length, stride, shift, document_end; Maybe<bool> cross_documents;
  Maybe<std::int64_t> pad; Maybe<DataDocuments> documents; DataTemplateSettings template_;
  Maybe<std::string> begin, system; Maybe<DataTooLong> too_long; Maybe<bool> pack; DataTrainSettings train;
  DataEvalSettings eval; std::map<std::string, DataFieldSettings> fields; DataMixSettings mix;
  DataBucketsSettings buckets; Maybe<std::int64_t> workers; Maybe<bool> drop_last; };

enum class EvalMetricKind { accuracy, auc, auc_pr, bits_per_token, bits_per_byte, calibration, confusion, dice, f1,
  gauc, iou, log_loss, loss, mae, mse, perplexity, precision, r2, recall, rmse, top_5, top_k };
enum class EvalMetricAverage { binary, macro, micro, none };
struct EvalMetricSettings {  // eval.metrics[]: a metric by its kind, or a table with the keys below
  Maybe<EvalMetricKind> kind; Maybe<std::string> name, by; Maybe<double> bytes_per_token;
  Maybe<EvalMetricAverage> average; Maybe<std::int64_t> ignore_index; Maybe<std::string> group;
  Maybe<std::int64_t> k; };
enum class EvalWeights { trained, ema, swa };
struct EvalSettings {  // eval: evaluation on the held-out data
  Maybe<Duration> every; std::vector<EvalMetricSettings> metrics; Maybe<std::string> best; Maybe<std::int64_t> patience;
  Maybe<EvalWeights> weights; };

struct CheckpointSettings { Maybe<Duration> every; Maybe<std::int64_t> keep, shard_mib; };  // checkpoint: checkpoints

enum class LogAlso { csv, tensorboard };
struct LogSettings {  // log: metrics.jsonl and the lines on the terminal
  Maybe<Duration> every; std::vector<std::string> norms; std::vector<LogAlso> also; std::vector<std::string> histograms;
  Maybe<Duration> histograms_every; };

/// All of it.
struct TrainConfig {
  std::string file;  // relative paths and `runs` are next to it, whether it is there or not
  ModelSettings model; Maybe<std::string> policy; Maybe<RunDevice> device;
  Maybe<std::variant<std::int64_t, RunBatchSize, std::vector<std::int64_t>>> batch_size;
  Maybe<std::int64_t> micro_batch; Maybe<double> epochs; Maybe<std::int64_t> steps; Maybe<Duration> max_time;
  Maybe<std::int64_t> seed, threads; Maybe<std::string> name, run_dir; ParametersSettings parameters; LossSettings loss;
  DistillationSettings distillation; OptimizerSettings optimizer; PrecisionSettings precision; DataSettings data;
  EvalSettings eval; CheckpointSettings checkpoint; LogSettings log;

  /// Reads a train.toml. Throws Error{usage} with everything that is wrong in it.
  static TrainConfig load(const std::string& path);
  /// As TOML, which `load` reads back to the same.
  std::string text() const;
};
// clang-format on

}  // namespace tandem::api::inline v1
